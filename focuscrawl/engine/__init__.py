"""Code that the Scrapy components (spiders, scheduler, pipelines, extensions, ...) share.

This package also reads arguments and settings into a `focuscrawl.crawl_config.CrawlConfig`, and
contains all uses of private names of Scrapy and Twisted (`focuscrawl.engine.private`). The
components themselves are modules of `focuscrawl`, because Scrapy loads them by path.
"""
