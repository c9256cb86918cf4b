"""A crawl as it goes on: read from its store page by page, each page once."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from focuscrawl.crawl.parts.priority_fidelity import OVERTAKEN
from focuscrawl.crawl.parts.topic_change import REDEFINED
from focuscrawl.crawl.plan import CrawlPlan
from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.diagnosis import HarvestWatch, Outcome
from focuscrawl.report.harvest_falls import is_page
from focuscrawl.report.outcome import PAGE, is_error, outcome
from focuscrawl.report.shared_status import SharedStatus
from focuscrawl.report.stores import open_store
from focuscrawl.store import schema
from focuscrawl.store.history import History
from focuscrawl.store.worker_registry import is_shared
from focuscrawl.studio.crawling.curve import Curve

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore
    from focuscrawl.studio.crawls import NamedCrawl

BUDGET = "budget"  #: kind of the events that tell of another one

_AT_ONCE = 20_000  # pages read in one look: about a second
_LATEST = 25  # fetches shown
_LESSONS = 8
_HOSTS = 10
_RARELY = 50.0  # counting what waits takes at most one part in so many of the time
_LEAST = 2.0  # seconds between two looks at it
_SAID = re.compile(r"(?:^|, )budget=(\d+)")


class Watch:
    """What a page about a crawl shows while it goes on; several tabs share one.

    What a look costs does not grow with the crawl, and what is kept only with its hosts: two
    numbers of each.

    Parameters
    ----------
    crawl : that is watched
    """

    def __init__(self, crawl: NamedCrawl) -> None:
        self._crawl = crawl
        self._lock = Lock()
        self._store: CrawlStore | None = None
        self._redefined: int | None = -1  # the event that told of it last
        self._forget()
        self._waiting: dict[str, Any] = {"bins": [], "total": 0, "seeds": 0, "at": None}
        self._count_waiting_at = 0.0

    def look(self) -> dict[str, Any]:
        """Read what is new, and return all that is shown; see docs/studio.md.

        Raises
        ------
        UserError
            The crawl cannot be read.
        """
        with self._lock:
            store = self._opened()
            redefined = store.row(
                sa.select(sa.func.max(schema.events.c.id)).where(schema.events.c.kind == REDEFINED)
            )[0]
            if redefined != self._redefined:
                self._forget()
                self._redefined = redefined
                topics = store.identity().get("topic", "").split(",")
                self._falls = HarvestWatch([topic for topic in topics if topic])
            self._read(store)
            self._count_waiting(store)
            return self._plain(store)

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    # -- reading -------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._seq = 0
        self._curve = Curve()
        self._outcomes: Counter[str] = Counter()
        self._hosts: dict[int, list[float]] = {}  # fetches and sum of R, by number of the host
        self._falls = HarvestWatch([])

    def _opened(self) -> CrawlStore:
        if self._store is None:
            self._store = open_store(self._crawl.place)
        return self._store

    def _read(self, store: CrawlStore) -> None:
        p, u = schema.page.c, schema.url.c
        from_ = schema.page.alias()
        new = (
            sa.select(
                *(p.seq, p.status, p.error, p.relevance, p.topic, p.duplicate_of, u.host),
                from_.c.topic.label("from_topic"),
                from_.c.relevance.label("from_relevance"),
            )
            .join(schema.url, u.id == p.url)
            .outerjoin(from_, from_.c.url == u.referrer)
            .where(p.seq > self._seq)
            .order_by(p.seq)
            .limit(_AT_ONCE)
        )
        rows = list(store.rows(new))
        if not rows:
            return
        e = schema.events.c
        within = sa.and_(e.seq >= rows[0].seq, e.seq <= rows[-1].seq, e.kind == OVERTAKEN)
        overtakes = {
            row.seq: row.detail for row in store.rows(sa.select(e.seq, e.detail).where(within))
        }
        for row in rows:
            self._curve.add(row.relevance)
            self._outcomes[outcome(row.status, row.error, row.duplicate_of is not None)] += 1
            of_host = self._hosts.setdefault(row.host, [0, 0.0])
            of_host[0] += 1
            of_host[1] += row.relevance
            self._falls.add(
                Outcome(
                    row.relevance,
                    is_page(row.status, row.error, row.duplicate_of),
                    row.topic,
                    row.from_topic,
                    (row.from_relevance or 0.0) > RELEVANT,
                    overtakes.get(row.seq),
                )
            )
        self._seq = rows[-1].seq

    def _count_waiting(self, store: CrawlStore) -> None:
        """Count what waits by its score; with a million URLs that is done rarely."""
        began = time.monotonic()
        if began < self._count_waiting_at:
            return
        u = schema.url.c
        # databases differ in how they round, so let them do it where it does not matter
        tenth: sa.ColumnElement[Any] = sa.cast(u.score * 1000, sa.Integer) // 100
        counted = sa.select(tenth.label("tenth"), sa.func.count().label("n"))
        counts = counted.where(u.state == schema.QUEUED).group_by(tenth)
        bins, seeds = [0] * 10, 0
        for row in store.rows(counts):
            if row.tenth is None:
                seeds = row.n
            else:
                bins[min(max(row.tenth, 0), 9)] += row.n
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._waiting = {"bins": bins, "total": sum(bins) + seeds, "seeds": seeds, "at": now}
        took = time.monotonic() - began
        self._count_waiting_at = began + max(_LEAST, _RARELY * took)

    # -- showing -------------------------------------------------------------------------------

    def _plain(self, store: CrawlStore) -> dict[str, Any]:
        current = self._crawl.current(store)
        alarm = self._falls.alarm
        return {
            "name": self._crawl.name,
            "about": current.about,
            "state": current.state,
            "running": current.running,
            "wanted": str(self._crawl.control.wanted),
            "budget": _budget(store),
            "fetched": current.fetched,
            "read": self._seq,
            "harvest_rate": self._curve.harvest_rate,
            "recent_harvest_rate": current.recent.harvest_rate,
            "pages_per_second": current.recent.pages_per_second,
            "curve": self._curve.plain(),
            "waiting": self._waiting,
            "hosts": self._best_hosts(store),
            "outcomes": self._plain_outcomes(),
            "alarm": None
            if alarm is None
            else {
                "text": alarm.describe(),
                "proposals": []
                if self._crawl.shared
                else [each.topic for each in alarm.proposals],
            },
            "lessons": _lessons(store),
            "latest": _latest(store, self._seq),
        }

    def _best_hosts(self, store: CrawlStore) -> list[dict[str, Any]]:
        best = sorted(self._hosts.items(), key=lambda item: (-item[1][1], item[0]))[:_HOSTS]
        h = schema.host.c
        found = store.rows(sa.select(h.id, h.name).where(h.id.in_([host for host, _ in best])))
        names = {row.id: row.name for row in found}
        return [
            {"host": names.get(host, "?"), "fetches": int(n), "relevance": round(total, 2)}
            for host, (n, total) in best
        ]

    def _plain_outcomes(self) -> list[dict[str, Any]]:
        return [
            {"outcome": name, "fetches": n, "error": is_error(name)}
            for name, n in self._outcomes.most_common()
            if name != PAGE
        ]


def _budget(store: CrawlStore) -> int:
    """Return the budget of the last run, as it was given or as it was changed; 0: no limit."""
    if is_shared(store):
        return SharedStatus.of(store).budget or 0
    budget = CrawlPlan.budget
    for event in History(store).events("start", BUDGET):
        if event.kind == BUDGET:
            budget = int(event.detail)
        else:
            said = _SAID.search(event.detail)
            budget = int(said[1]) if said else CrawlPlan.budget
    return budget


def _lessons(store: CrawlStore) -> list[dict[str, Any]]:
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


def _latest(store: CrawlStore, seq: int) -> list[dict[str, Any]]:
    """Return the last fetches up to one, the last one first, and the link that led to each."""
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
            *(p.seq, p.relevance, p.score, p.title, p.topic, p.status, p.error, p.duplicate_of),
            *(u.url.label("url"), from_.c.url.label("referrer"), anchor.label("anchor")),
        )
        .join(schema.url, u.id == p.url)
        .outerjoin(from_, from_.c.id == u.referrer)
        .where(p.seq <= seq, p.seq > seq - _LATEST)
        .order_by(p.seq.desc())
    )
    return [
        {
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
        for row in store.rows(rows)
    ]
