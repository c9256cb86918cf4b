"""How the crawl sits in Scrapy: which crawl a crawler has, requests, errors, the process.

Here: what spiders, scheduler, pipelines, middlewares and extensions have in common; the table of
settings (`focuscrawl.engine.settings_table`); and the one module that uses what Scrapy and Twisted
keep to themselves (`focuscrawl.engine.private`). Not here: the components that Scrapy finds by
their path.
"""
