"""Estimates of a crawl's recall, and the stop rules that users base on the estimates.

The module `focuscrawl.crawl.stopping` estimates the recall and applies the stop rules. The page
``docs/research/stopping-studies.md`` reports how good the recall estimates are.
"""
