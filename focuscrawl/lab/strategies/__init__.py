"""Strategies for comparison only; `focuscrawl.strategies` has those for use in crawls.

Like any strategy they are found by name.
"""
