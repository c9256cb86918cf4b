"""Several workers on one crawl, which they share through PostgreSQL.

Here: who holds which shard of the hosts, who may fetch how much, what travels from worker to
worker, and the crawl that lives by that. Not here: the tables
(`focuscrawl.store.worker_tables`), and what links are worth
(`focuscrawl.strategies`). The design is in ``docs/workers.md``.
"""

from focuscrawl.workers.joining import open_shared_crawl

__all__ = ["open_shared_crawl"]
