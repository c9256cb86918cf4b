"""Strategies for comparison only; `focuscrawl.strategies` has those for use in crawls.

The strategies for comparison are found by name, like any strategy.
"""
