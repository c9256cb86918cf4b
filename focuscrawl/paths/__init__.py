"""Sequential models of the paths from a site's start page to its goal pages (methods.md 9).

The package `paths` contains the path model (a CRF) of Sarawagi and Vydiswaran, the code that
trains the model, and the class `Forager`, which scores links. The module
`focuscrawl.strategies.path_strategy` contains the strategy that uses path models.
"""
