"""The pages that a crawl has recorded: how many, and a progress bar to read them by."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import sqlalchemy as sa
from tqdm import tqdm

from focuscrawl.store import schema

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore


def pages_of(store: CrawlStore) -> int:
    """Return how many fetches a crawl has recorded."""
    (row,) = store.rows(sa.select(sa.func.count().label("n")).select_from(schema.page))
    return int(row.n)


def reading(store: CrawlStore, what: str) -> tqdm[NoReturn]:
    """Return a progress bar of the pages of a crawl."""
    return tqdm(total=pages_of(store), desc=what, unit=" pages", disable=None)
