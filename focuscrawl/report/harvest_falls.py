"""Falls of a crawl's harvest rate and their causes, from its store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from focuscrawl.crawl.parts.topic_change import REDEFINED
from focuscrawl.diagnosis import ALARM, RECOVERED, HarvestWatch
from focuscrawl.store import schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from focuscrawl.diagnosis import Diagnosis
    from focuscrawl.store import CrawlStore


def watch_again(store: CrawlStore) -> tuple[HarvestWatch, list[Diagnosis]]:
    """Watch a crawl again as it is judged now; return the watch, and every alarm it gave.

    An alarm of the store's events may be missing here: the crawl has followed another
    definition of its topic since.
    """
    topics = store.identity().get("topic", "")
    watch = HarvestWatch([topic for topic in topics.split(",") if topic])
    alarms = []
    for row in _rows(store):
        told = watch.visited(
            row.url,
            row.referrer,
            relevance=row.relevance,
            topic=row.topic,
            judged=is_page(row.status, row.error, row.duplicate_of),
        )
        if told == ALARM and watch.alarm is not None:
            alarms.append(watch.alarm)
    return watch, alarms


def last_alarm(store: CrawlStore) -> str | None:
    """Return what the last alarm of a crawl told, if it is not over."""
    e = schema.events.c
    told = sa.select(e.kind, e.detail).where(e.kind.in_((ALARM, RECOVERED, REDEFINED)))
    for row in store.rows(told.order_by(e.id.desc()).limit(1)):
        if row.kind == ALARM:
            return str(row.detail)
    return None


def is_page(status: int, error: str | None, duplicate_of: object) -> bool:
    """Tell whether a fetch brought a page, and a new one."""
    return 200 <= status < 300 and error is None and duplicate_of is None


def _rows(store: CrawlStore) -> Iterator[sa.Row[tuple[object, ...]]]:
    p, u = schema.page.c, schema.url.c
    columns = (p.url, u.referrer, p.relevance, p.topic, p.status, p.error, p.duplicate_of)
    return store.rows(sa.select(*columns).join(schema.url, u.id == p.url).order_by(p.seq))
