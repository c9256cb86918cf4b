"""The frontier: the queue of known, unfetched URLs, sorted by score, with limits per host.

Other packages compute scores (`focuscrawl.strategies`), discount scores (`focuscrawl.crawl.traps`)
and store URLs (`focuscrawl.store`).
"""

from focuscrawl.frontier.frontier import LAST, Frontier, SortedQueues, halve_score, halve_scores
from focuscrawl.frontier.hosts import NameTable

__all__ = ["LAST", "Frontier", "NameTable", "SortedQueues", "halve_score", "halve_scores"]
