"""Scrapy download handlers: one for the live Web, one for recordings (saved pages).

Each handler has its own module, so that a replay does not import Scrapy's HTTP client.
"""
