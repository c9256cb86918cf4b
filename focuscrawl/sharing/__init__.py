"""Several workers on one crawl, which they share through PostgreSQL.

Here: who holds which shard of the hosts, who may fetch how much, what travels from worker to
worker, and the crawl that lives by that. Not here: the tables (`focuscrawl.store.shared`), and
what links are worth (`focuscrawl.strategies`). The design is in ``docs/workers.md``.
"""

from focuscrawl.sharing.crawl import SharedCrawl
from focuscrawl.sharing.opening import open_shared_crawl

__all__ = ["SharedCrawl", "open_shared_crawl"]
