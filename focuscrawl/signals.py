"""Signals of focuscrawl, sent through Scrapy's signal manager."""

#: sent when a fetch has been recorded; arguments: ``crawl`` (Crawl), ``visit`` (Visit)
page_visited = object()
