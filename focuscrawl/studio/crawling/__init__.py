"""Crawls in the studio: beginning one, watching it, another budget."""

from focuscrawl.studio.crawling.routes import routes

__all__ = ["routes"]
