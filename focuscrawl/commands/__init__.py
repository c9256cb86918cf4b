"""Commands that are Scrapy's: ``scrapy crawl`` of the project, ``focuscrawl crawl`` anywhere."""
