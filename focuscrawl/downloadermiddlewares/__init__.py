"""Scrapy downloader middlewares of the spider ``focused`` and of the add-on.

The module `focus` is used only by the add-on, which has no item pipelines of focuscrawl.
"""
