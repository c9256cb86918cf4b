"""What came of fetching hubs again within a crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import sqlalchemy as sa

from focuscrawl.crawl.visit import NOT_MODIFIED
from focuscrawl.report.plain_text import counted
from focuscrawl.store import schema

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore


class Again(NamedTuple):
    """Second and later fetches of pages, which are in no count of pages.

    Attributes
    ----------
    fetches : those made
    unchanged : of these, answered "not modified"
    links : that the pages did not have before
    """

    fetches: int = 0
    unchanged: int = 0
    links: int = 0

    @classmethod
    def of(cls, store: CrawlStore) -> Self:
        """Count them."""
        r = schema.revisit.c
        counts = sa.select(
            sa.func.count(r.status),
            sa.func.count(sa.case((r.status == NOT_MODIFIED, 1))),
            sa.func.coalesce(sa.func.sum(r.links), 0),
        )
        return cls(*store.row(counts.where(r.seq.is_not(None))))

    def in_words(self) -> str:
        """Say it in a few words; nothing if there were none."""
        if not self.fetches:
            return ""
        words = f"{counted(self.fetches, 'hub')} again: {counted(self.links, 'new link')}"
        return words + (f", {self.unchanged:,} not modified" if self.unchanged else "")
