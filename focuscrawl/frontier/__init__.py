"""The frontier: every known, unfetched URL, best first, within the limits of politeness.

Here: the numbering of URLs and hosts, priorities in memory, which host may be asked when. Not
here: how scores come about (`focuscrawl.strategies`), what is deferred and why
(`focuscrawl.crawl.parts.traps`), what is kept on disk (`focuscrawl.store`).
"""

from focuscrawl.frontier.arrangement import Arrangement
from focuscrawl.frontier.frontier import Frontier
from focuscrawl.frontier.names import NameTable

__all__ = ["Arrangement", "Frontier", "NameTable"]
