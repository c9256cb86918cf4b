"""Estimates of recall, and the stop rules that users base on these estimates.

`focuscrawl.crawl.stopping` makes the estimates and applies the rules.
``docs/research/stopping-studies.md`` measures how good the estimates are.
"""
