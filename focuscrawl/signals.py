"""Signals of focuscrawl, sent through Scrapy's signal manager."""

#: after a fetch was judged and recorded; arguments: ``crawl`` (Crawl), ``visit`` (Visit)
page_visited = object()
