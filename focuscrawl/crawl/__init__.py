"""The one loop: frontier, page, critic, strategy, store; without a network and without Scrapy.

Here: what happens when a page arrives and which URL comes next; seeds, duplicates, the folder a
crawl is kept in; in `parts` what takes part in the loop. Not here: fetching (Scrapy's), scoring
(the strategy's), what is done after a crawl (`focuscrawl.offline`), crawls in rounds
(`focuscrawl.rounds`).
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
