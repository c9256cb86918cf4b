"""The URLs that wait with the best scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from focuscrawl.store import schema

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore


class WaitingUrl(NamedTuple):
    """A URL that waits, and its score; None: a start URL, which comes before every link."""

    url: str
    score: float | None


def frontier_top(store: CrawlStore, most: int = 20) -> list[WaitingUrl]:
    """Return the waiting URLs with the best scores, the best first; of equals the first found.

    It looks at every URL of the crawl: a second for a million. What is given out next also
    depends on which hosts have room.
    """
    u = schema.url.c
    query = (
        sa.select(u.url, u.score)
        .where(u.state == schema.QUEUED)
        .order_by(u.score.is_not(None), u.score.desc(), u.id)
        .limit(most)
    )
    return [WaitingUrl(row.url, row.score) for row in store.rows(query)]
