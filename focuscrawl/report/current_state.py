"""What a crawl is doing, at a cost that does not grow with the crawl: for lists of many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from focuscrawl.report.status import Recent, last_pages, of_whom
from focuscrawl.report.stop_reasons import run_state
from focuscrawl.store import schema

if TYPE_CHECKING:
    from datetime import datetime

    from focuscrawl.store import CrawlStore


@dataclass(frozen=True)
class CurrentState:
    """A crawl, without any sum over all of its pages or URLs.

    Attributes
    ----------
    running : somebody crawls
    about : topic, strategy and web in a line
    state : see `focuscrawl.report.stop_reasons.RunState`
    fetched : fetches
    last_fetch : when, in UTC; None before the first
    recent : how fast it fetches, and how well, of late
    """

    running: bool
    about: str
    state: str
    fetched: int
    last_fetch: datetime | None
    recent: Recent

    @classmethod
    def of(cls, store: CrawlStore, *, now: datetime) -> CurrentState:
        """Read one kept in a folder; parameters are those of `report.status.Status.of`."""
        running, state = run_state(store)
        (last,) = store.row(sa.select(sa.func.max(schema.page.c.seq)))
        fetched = last or 0
        pages = last_pages(store, fetched)
        return cls(
            running=running,
            about=of_whom(store),
            state=state,
            fetched=fetched,
            last_fetch=pages[0][0] if pages else None,
            recent=Recent.of(pages, now),
        )
