"""How the crawl sits in Scrapy: which crawl a crawler has, requests, errors, the process.

Here: what spiders, scheduler, middlewares and extensions have in common, and the one module that
uses what Scrapy and Twisted keep to themselves (`focuscrawl.engine.private`). Not here: the
components that Scrapy finds by their path.
"""
