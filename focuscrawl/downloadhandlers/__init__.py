"""Scrapy download handlers: of the live Web, and of a recorded one."""

from focuscrawl.downloadhandlers.replay import ReplayDownloadHandler

__all__ = ["ReplayDownloadHandler"]
