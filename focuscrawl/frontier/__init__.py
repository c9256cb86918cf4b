"""The frontier: the queue of known, unfetched URLs, ordered by score, with politeness limits.

Other packages compute scores (`focuscrawl.strategies`), defer URLs (`focuscrawl.crawl.traps`) and
store them (`focuscrawl.store`).
"""

from focuscrawl.frontier.frontier import Frontier, SortedQueues
from focuscrawl.frontier.hosts import NameTable

__all__ = ["Frontier", "NameTable", "SortedQueues"]
