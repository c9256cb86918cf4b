"""A Scrapy project of somebody who had never heard of focuscrawl when they wrote it."""
