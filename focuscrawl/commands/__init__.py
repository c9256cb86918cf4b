"""Commands that extend Scrapy's: ``scrapy crawl`` in a project, ``focuscrawl crawl`` anywhere."""
