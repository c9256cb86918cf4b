"""The one loop: frontier, page, critic, strategy, store; without a network and without Scrapy.

Here: what happens when a page arrives and which URL comes next; seeds, duplicates, when to stop,
the folder a crawl is kept in. Not here: fetching (the Scrapy shell's), scoring (the strategy's).
"""

from focuscrawl.crawl.crawl import Crawl
from focuscrawl.crawl.folder import CrawlFolder
from focuscrawl.crawl.opening import open_crawl
from focuscrawl.crawl.plan import CrawlPlan
from focuscrawl.crawl.types import Fetch, Fetched, Visit

__all__ = ["Crawl", "CrawlFolder", "CrawlPlan", "Fetch", "Fetched", "Visit", "open_crawl"]
