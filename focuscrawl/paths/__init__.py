"""Sequential models of the paths from a site's start page to its goal pages (methods.md 9).

The package has the chain model of Sarawagi and Vydiswaran, its states, features and rewards,
training paths, and the forager that scores links. `focuscrawl.strategies.path_strategy` crawls
with them.
"""
