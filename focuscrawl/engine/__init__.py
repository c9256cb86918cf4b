"""Scrapy's side of a crawl: what its components share, and what is set up for them.

Here: what spiders, scheduler, pipelines, middlewares and extensions have in common, how arguments
and settings become a `focuscrawl.crawl_config.CrawlConfig`, and every use of private names of
Scrapy and Twisted (`focuscrawl.engine.private`). Not here: the components that Scrapy finds by
their path.
"""
