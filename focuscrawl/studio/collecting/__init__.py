"""Taking home what a crawl has found: exports as jobs, their files, and the first rows of each."""

from focuscrawl.studio.collecting.routes import routes

__all__ = ["routes"]
