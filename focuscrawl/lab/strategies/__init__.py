"""Strategies that serve only as a comparison in studies; others are in `focuscrawl.strategies`.

A crawl can use a strategy of this package by its name, like any other strategy.
"""
