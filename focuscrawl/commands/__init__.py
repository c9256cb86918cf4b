"""Commands built on Scrapy's: ``scrapy crawl`` in a project, ``focuscrawl crawl`` anywhere."""
