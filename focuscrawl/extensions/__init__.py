"""Scrapy extensions: what watches a crawl, and when it ends."""
