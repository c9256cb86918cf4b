"""Strategies that serve only as a comparison in studies; others are in `focuscrawl.strategies`.

A crawl can use a strategy of the package `lab.strategies` by its name, like any other strategy.
"""
