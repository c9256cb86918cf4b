"""Scrapy extensions that monitor a crawl and control when it pauses or stops."""
