"""Looking at a crawl: its pages and frontier, one page, hubs, hosts, two crawls.

Here are addresses and pages, and what is kept at hand for them. What is read of a crawl is in
`focuscrawl.report`.
"""

from focuscrawl.studio.exploring.routes import routes

__all__ = ["routes"]
