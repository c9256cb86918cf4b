"""What spiders, scheduler, pipelines, middlewares and extensions of Scrapy have in common.

Here, too: the table of settings, and every use of private names of Scrapy and Twisted
(`focuscrawl.engine.private`). Not here: the components that Scrapy finds by their path.
"""
