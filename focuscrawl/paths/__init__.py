"""Learning the paths from a site's front door to its goal pages, and foraging by them.

What lives here computes (methods 9, Sarawagi and Vydiswaran): the chain model, its states and
features, training paths, rewards, and the forager that scores links. The strategy that puts
it to work in a crawl is in `focuscrawl.strategies.path_strategy`.
"""
