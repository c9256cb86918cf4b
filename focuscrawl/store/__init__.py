"""The crawl store: an SQLite database of all fetches, URLs, links and events of a crawl.

The package `store` contains the database schema, the writer, and the reader
(`focuscrawl.store.history`).
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
