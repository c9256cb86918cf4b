"""The crawl loop, its state and the parts that take part in it; without network and Scrapy.

Not here: fetching (Scrapy's), scoring (`focuscrawl.strategies`), training after a crawl
(`focuscrawl.offline`), crawls in rounds (`focuscrawl.rounds`).
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
