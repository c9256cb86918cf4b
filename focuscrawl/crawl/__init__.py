"""The one loop: frontier, page, critic, strategy, store; without a network and without Scrapy.

Here: what happens when a page arrives and which URL comes next; seeds, duplicates, when to stop,
the folder a crawl is kept in. Not here: fetching (the Scrapy shell's), scoring (the strategy's).
"""

from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.crawl.crawl import Crawl
from focuscrawl.crawl.folder import CrawlFolder
from focuscrawl.crawl.plan import CrawlPlan
from focuscrawl.crawl.visit import Download, Fetch, PageVisit, Visit

__all__ = [
    "Crawl",
    "CrawlFolder",
    "CrawlPlan",
    "Download",
    "Fetch",
    "PageVisit",
    "Visit",
    "open_crawl",
]
