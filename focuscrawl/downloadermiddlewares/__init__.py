"""Scrapy downloader middlewares of the spider ``focused`` and of the add-on.

The add-on uses the module `focus` instead of focuscrawl's item pipelines.
"""
