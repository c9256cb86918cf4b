"""Scrapy downloader middlewares of the spider ``focused`` and of the add-on.

`focus` serves only the add-on, where it replaces the pipelines.
"""
