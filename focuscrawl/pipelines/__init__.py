"""Scrapy item pipelines: what becomes of a fetch, one step each, in the order of ITEM_PIPELINES.

The items are `focuscrawl.crawl.visit.PageVisit`, one a fetch. A pipeline of your own between two
of these sees what those before it found out; what it changes counts for those after it.
"""
