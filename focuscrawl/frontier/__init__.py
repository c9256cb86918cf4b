"""The frontier: the queue of known, unfetched URLs, sorted by score, with limits per host.

Other packages compute the scores (`focuscrawl.strategies`), defer URLs (`focuscrawl.crawl.traps`)
and store the URLs (`focuscrawl.store`).
"""

from focuscrawl.frontier.frontier import Frontier, SortedQueues
from focuscrawl.frontier.hosts import NameTable

__all__ = ["Frontier", "NameTable", "SortedQueues"]
