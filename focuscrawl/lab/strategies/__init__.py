"""Strategies for comparisons only; `focuscrawl.strategies` has the strategies for real crawls.

The strategies for comparison are found by name, like any strategy.
"""
