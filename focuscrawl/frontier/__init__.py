"""The frontier: every known, unfetched URL, best first, within the limits of politeness.

Here: the numbering of URLs and hosts, priorities in memory, which host may be asked when. Not
here: how scores come about (`focuscrawl.strategies`), what is deferred and why
(`focuscrawl.crawl.traps`), what is kept on disk (`focuscrawl.store`).
"""

from focuscrawl.frontier.frontier import Arrangement, Frontier
from focuscrawl.frontier.hosts import NameTable

__all__ = ["Arrangement", "Frontier", "NameTable"]
