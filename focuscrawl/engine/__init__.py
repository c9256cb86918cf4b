"""Code that focuscrawl's Scrapy components (spiders, scheduler, pipelines, ...) share.

This package also reads arguments and settings into a `focuscrawl.crawl_config.CrawlConfig`, and
contains all uses of private names of Scrapy and Twisted (`focuscrawl.engine.private`). The Scrapy
components are in other packages of `focuscrawl`, and users write their paths in Scrapy settings.
"""
