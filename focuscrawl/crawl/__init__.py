"""The crawl loop, its state and the parts of a crawl, which use neither network nor Scrapy.

Scrapy fetches the pages (`focuscrawl.engine`). `focuscrawl.strategies` scores links,
`focuscrawl.offline` trains after a crawl, and `focuscrawl.rounds` runs crawls in rounds.
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
