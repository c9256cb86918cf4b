"""What came last in a crawl: fetches and lessons."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from focuscrawl.report.outcome import outcome
from focuscrawl.store import schema

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore

_LATEST = 25  # fetches shown
_LESSONS = 8


class LatestFetches:
    """The last fetches, and the link that led to each; each is read once."""

    def __init__(self) -> None:
        self._seq = 0
        self._fetches: deque[dict[str, Any]] = deque(maxlen=_LATEST)

    def read(self, store: CrawlStore, seq: int) -> None:
        """Read those that are new, up to one."""
        p, u, link = schema.page.c, schema.url.c, schema.link.c
        from_ = schema.url.alias()
        anchor = (
            sa.select(link.anchor)
            .where(link.target == p.url, link.source == u.referrer)
            .order_by(link.score.desc())
            .limit(1)
            .scalar_subquery()
        )
        rows = (
            sa.select(
                *(p.seq, p.relevance, p.score, p.title, p.topic, p.status, p.error),
                *(p.duplicate_of, u.url.label("url"), from_.c.url.label("referrer")),
                anchor.label("anchor"),
            )
            .join(schema.url, u.id == p.url)
            .outerjoin(from_, from_.c.id == u.referrer)
            .where(p.seq <= seq, p.seq > max(self._seq, seq - _LATEST))
            .order_by(p.seq)
        )
        for row in store.rows(rows):
            fetch = {
                "seq": row.seq,
                "url": row.url,
                "title": (row.title or "")[:200],
                "relevance": round(row.relevance, 3),
                "score": None if row.score is None else round(row.score, 3),
                "topic": row.topic,
                "outcome": outcome(row.status, row.error, row.duplicate_of is not None),
                "referrer": row.referrer,
                "anchor": (row.anchor or "")[:200],
            }
            self._fetches.appendleft(fetch)
        self._seq = seq

    def plain(self) -> list[dict[str, Any]]:
        """Return them, the last one first."""
        return [*self._fetches]


def lessons(store: CrawlStore) -> list[dict[str, Any]]:
    """Return the newest lessons, the last one first."""
    m = schema.models.c
    rows = sa.select(m.version, m.trained_at_seq, m.instances, m.metrics)
    found = []
    for row in store.rows(rows.order_by(m.version.desc()).limit(_LESSONS)):
        metrics = json.loads(row.metrics)
        lesson = {"lesson": row.version, "at": row.trained_at_seq, "instances": row.instances}
        lesson |= {name: metrics.get(name) for name in ("auc", "predicted", "relevance", "drift")}
        found.append(lesson)
    return found
