"""Scrapy downloader middlewares.

`focus` is for other people's projects alone, in place of the pipelines; all others are in both.
"""
