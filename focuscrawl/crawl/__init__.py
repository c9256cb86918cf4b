"""The crawl loop, the state and the parts of a crawl, which use neither network nor Scrapy.

The package `focuscrawl.engine` lets Scrapy fetch the pages. The package `focuscrawl.strategies`
scores links, `focuscrawl.offline` trains after a crawl, and `focuscrawl.rounds` runs crawls in
rounds (batches of fetches).
"""

from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.crawl.crawl_folder import CrawlFolder
from focuscrawl.crawl.loop import Crawl
from focuscrawl.crawl.visit import Download, Fetch, PageVisit, Visit
from focuscrawl.crawl_config import CrawlConfig

__all__ = [
    "Crawl",
    "CrawlConfig",
    "CrawlFolder",
    "Download",
    "Fetch",
    "PageVisit",
    "Visit",
    "open_crawl",
]
