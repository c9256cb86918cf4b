"""A crawl as it goes on: read from its store page by page, each page once."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.diagnosis import HarvestWatch, Outcome
from focuscrawl.report.harvest_falls import is_page
from focuscrawl.report.outcome import PAGE, is_error, outcome
from focuscrawl.report.status import Recent, last_pages, of_whom
from focuscrawl.report.stop_reasons import run_state
from focuscrawl.report.stores import open_store
from focuscrawl.store import schema
from focuscrawl.studio.crawling.best_hosts import BestHosts
from focuscrawl.studio.crawling.curve import Curve
from focuscrawl.studio.crawling.happenings import Happenings
from focuscrawl.studio.crawling.latest import LatestFetches, lessons

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore
    from focuscrawl.studio.crawls import NamedCrawl

_AT_ONCE = 20_000  # pages read in one look: about a second
_RARELY = 50.0  # counting what waits takes at most one part in so many of the time
_LEAST = 2.0  # seconds between two looks at it


class Watch:
    """What a page about a crawl shows while it goes on; several tabs share one.

    Neither what a look costs nor what is kept grows with the crawl: each page and each event is
    read once, and the class of the page that one was found on, which alarms ask for, is in the
    store.

    Parameters
    ----------
    crawl : that is watched
    """

    def __init__(self, crawl: NamedCrawl) -> None:
        self._crawl = crawl
        self._lock = Lock()
        self._store: CrawlStore | None = None
        self._happenings = Happenings()
        self._falls: HarvestWatch | None = None
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
            (fetched,) = store.row(sa.select(sa.func.max(schema.page.c.seq)))
            fetched = fetched or 0
            # after the number of pages: events of all of them are there
            if self._happenings.read(store):
                self._forget()
                self._happenings = Happenings()
                self._happenings.read(store)
            if self._falls is None:
                topics = store.identity().get("topic", "").split(",")
                self._falls = HarvestWatch([topic for topic in topics if topic])
            self._read(store, self._falls, min(fetched, self._seq + _AT_ONCE))
            self._count_waiting(store)
            return self._plain(store, fetched)

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
        self._hosts = BestHosts()
        self._latest = LatestFetches()
        self._falls = None

    def _opened(self) -> CrawlStore:
        if self._store is None:
            self._store = open_store(self._crawl.place)
        return self._store

    def _read(self, store: CrawlStore, falls: HarvestWatch, last: int) -> None:
        """Read the pages up to one."""
        p, u = schema.page.c, schema.url.c
        from_ = schema.page.alias()
        earlier = sa.and_(from_.c.url == u.referrer, from_.c.seq < p.seq)
        new = (
            sa.select(
                *(p.seq, p.status, p.error, p.relevance, p.topic, p.duplicate_of, u.host),
                from_.c.topic.label("from_topic"),
                from_.c.relevance.label("from_relevance"),
            )
            .join(schema.url, u.id == p.url)
            .outerjoin(from_, earlier)
            .where(p.seq > self._seq, p.seq <= last)
            .order_by(p.seq)
        )
        for row in store.rows(new):
            self._curve.add(row.relevance)
            self._outcomes[outcome(row.status, row.error, row.duplicate_of is not None)] += 1
            self._hosts.add(row.host, row.relevance)
            falls.add(
                Outcome(
                    row.relevance,
                    is_page(row.status, row.error, row.duplicate_of),
                    row.topic,
                    row.from_topic,
                    (row.from_relevance or 0.0) > RELEVANT,
                    self._happenings.overtakes(row.seq),
                )
            )
        self._seq = last
        self._latest.read(store, last)

    def _count_waiting(self, store: CrawlStore) -> None:
        """Count what waits by its score; with a million URLs that is done rarely."""
        began = time.monotonic()
        if began < self._count_waiting_at:
            return
        u = schema.url.c
        tenth: sa.ColumnElement[Any] = sa.cast(u.score * 10, sa.Integer)
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

    def _plain(self, store: CrawlStore, fetched: int) -> dict[str, Any]:
        running, state = run_state(store)
        recent = Recent.of(last_pages(store, fetched), datetime.now(UTC))
        alarm = None if self._falls is None else self._falls.alarm
        return {
            "name": self._crawl.name,
            "about": of_whom(store),
            "state": state,
            "running": running,
            "wanted": str(self._crawl.control.wanted),
            "budget": self._happenings.budget,
            "fetched": fetched,
            "read": self._seq,
            "harvest_rate": self._curve.harvest_rate,
            # of the same fetches as the rate of all, not of those that came meanwhile
            "recent_harvest_rate": self._curve.recent_harvest_rate,
            "pages_per_second": recent.pages_per_second,
            "curve": self._curve.plain(),
            "waiting": self._waiting,
            "hosts": self._best_hosts(store),
            "outcomes": self._plain_outcomes(),
            "alarm": None
            if alarm is None
            else {
                "text": alarm.describe(),
                "proposals": [each.topic for each in alarm.proposals],
            },
            "lessons": lessons(store),
            "latest": self._latest.plain(),
        }

    def _best_hosts(self, store: CrawlStore) -> list[dict[str, Any]]:
        best = self._hosts.best()
        h = schema.host.c
        found = store.rows(sa.select(h.id, h.name).where(h.id.in_([host for host, _, _ in best])))
        names = {row.id: row.name for row in found}
        return [
            {"host": names.get(host, "?"), "fetches": n, "relevance": round(total, 2)}
            for host, n, total in best
        ]

    def _plain_outcomes(self) -> list[dict[str, Any]]:
        return [
            {"outcome": name, "fetches": n, "error": is_error(name)}
            for name, n in self._outcomes.most_common()
            if name != PAGE
        ]
