"""The frontier: every known, unfetched URL, best first, within the limits of politeness.

Not here: scores (`focuscrawl.strategies`), which URLs are deferred (`focuscrawl.crawl.traps`),
storage (`focuscrawl.store`).
"""

from focuscrawl.frontier.frontier import Frontier, SortedQueues
from focuscrawl.frontier.hosts import NameTable

__all__ = ["Frontier", "NameTable", "SortedQueues"]
