"""The crawl store: everything a crawl fetched, found and decided, in one database.

Here: the schema, the writer, and what is read back, fetch by fetch
(`focuscrawl.store.history`). Not here: any decision about the crawl.
"""

from focuscrawl.store.crawl_store import CrawlStore
from focuscrawl.store.schema import AnswerRow, ModelRow, NewUrl, PageRow, RevisitRow, VisitRecord
from focuscrawl.store.writer import StoreWriter

__all__ = [
    "AnswerRow",
    "CrawlStore",
    "ModelRow",
    "NewUrl",
    "PageRow",
    "RevisitRow",
    "StoreWriter",
    "VisitRecord",
]
