"""How a crawl that workers share is doing at this moment, by its store alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from focuscrawl.report.plain_text import counted, one_line, table
from focuscrawl.report.status import MINUTE_ROWS, in_brief, of_whom, rate
from focuscrawl.report.stop_reasons import in_words, last_reason
from focuscrawl.report.summary import RECENT
from focuscrawl.store import schema, worker_tables
from focuscrawl.store.worker_registry import Worker, is_paused, read_workers

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore

_NAME = 28  # characters


@dataclass(frozen=True)
class SharedWorkerStatus:
    """One of several workers; most is as in `focuscrawl.store.worker_registry.Worker`.

    Attributes
    ----------
    state : ``crawling``, ``loading`` its shards, ``pausing``, ``paused``, ``ending``, ``silent``:
        its lease has run out, and nobody has taken over yet
    pages_per_second : in the last minute
    harvest_rate : mean relevance of its last `RECENT` fetches; None before the first
    idle : seconds since its last fetch; None before the first
    trains : it is the one that trains
    """

    id: int
    name: str
    state: str
    since: float
    heard: float
    lease_left: float
    fetched: int
    outstanding: int
    in_flight: int | None
    pages_per_second: float
    harvest_rate: float | None
    idle: float | None
    shards: int
    queued: int
    unread: int | None
    model_version: int
    trains: bool
    budget: int | None

    def cells(self) -> list[str]:
        """Return what is shown of it."""
        return [
            f"{self.id}",
            one_line(self.name, _NAME),
            self.state,
            in_brief(self.since),
            f"{self.fetched:,}",
            f"{self.pages_per_second:.1f}",
            "-" if self.harvest_rate is None else f"{self.harvest_rate:.3f}",
            "-" if self.idle is None else f"{in_brief(self.idle)} ago",
            f"{self.shards}",
            f"{self.queued:,}",
            "-" if self.unread is None else f"{self.unread:,}",
            f"{self.model_version}{'*' if self.trains else ''}",
            f"{self.heard:.1f} s ago",
            in_brief(self.lease_left),
        ]


_HEADING = [
    "id",
    "worker",
    "state",
    "since",
    "fetches",
    "pages/s",
    f"last {RECENT}",
    "last fetch",
    "shards",
    "waiting",
    "unread",
    "model",
    "heard",
    "lease",
]


@dataclass(frozen=True)
class SharedStatus:
    """A crawl and the workers on it.

    Attributes
    ----------
    about : topic, strategy and web in a line
    state : ``crawling``, ``pausing``, ``paused``, ``ending``, or why nobody crawls
    paused, ended : a person wants it paused, and nobody fetches; nobody crawls
    fetched, granted, budget : fetches recorded; recorded or allowed to a worker; the most there
        may be, as the worker that joined last was told: 0 for no limit, None if it did not say
    harvest_rate : of the whole crawl
    pages_per_second : of all workers in the last minute
    waiting : URLs that wait with the workers; where there are none, in the store
    shards, free : how many there are, and of these how many nobody holds
    model, behind : lessons learned; fetches since the newest one was begun
    workers : those that have neither left nor been given up
    gone : how many of the earlier ones ``left``, and were ``lost``
    gone_fetched : fetches of these
    """

    about: str
    state: str
    paused: bool
    ended: bool
    fetched: int
    granted: int
    budget: int | None
    harvest_rate: float
    pages_per_second: float
    waiting: int
    shards: int
    free: int
    model: int
    behind: int
    workers: list[SharedWorkerStatus]
    gone: dict[str, int]
    gone_fetched: int

    @classmethod
    def of(cls, store: CrawlStore) -> SharedStatus:
        """Read how a crawl is doing; cheap, however large it is, while somebody crawls."""
        m = schema.models.c
        c, time = worker_tables.crawl.c, sa.func.clock_timestamp().label("time")
        now = _one(store, c.fetched, c.granted, c.relevance, c.trainer, time)
        workers, paused = read_workers(store), is_paused(store)
        alive = [each for each in workers if each.alive]
        version, begun = sa.func.max(m.version), sa.func.max(m.trained_at_seq)
        newest = _one(store, version.label("version"), begun.label("begun"))
        by_worker, at = _last_pages(store, now.fetched), now.time.astimezone(UTC)
        last = sorted((page for pages in by_worker.values() for page in pages), reverse=True)
        owner = worker_tables.shard.c.owner
        shards = _one(store, sa.func.count().label("all"), sa.func.count(owner).label("held"))
        gone = _gone(store)
        return cls(
            about=of_whom(store),
            state=_state(store, alive, paused=paused, fetched=now.fetched),
            paused=paused and all(each.paused for each in alive),
            ended=not alive,
            fetched=now.fetched,
            granted=now.granted,
            budget=workers[-1].budget if workers else None,
            harvest_rate=now.relevance / now.fetched if now.fetched else 0.0,
            pages_per_second=rate([time for time, _ in last], at),
            waiting=sum(each.queued for each in alive) if alive else _queued(store),
            shards=shards.all,
            free=shards.all - shards.held,
            model=newest.version or 0,
            behind=now.fetched - (newest.begun or 0),
            workers=[
                _worker(each, by_worker[each.id], at, now.trainer, paused=paused)
                for each in workers
            ],
            gone={state: n for state, n, _ in gone},
            gone_fetched=sum(fetched for _, _, fetched in gone),
        )

    def text(self) -> str:
        """Return a table of the workers, with the crawl in some lines above it."""
        spent = f"{self.fetched:,} fetched"
        if self.budget:
            spent += f" of {self.budget:,}, {self.granted - self.fetched:,} more granted"
        crawl = [
            spent,
            f"harvest rate {self.harvest_rate:.3f}",
            f"{self.pages_per_second:.1f} pages/s",
            f"{counted(self.waiting, 'URL')} waiting",
        ]
        shards = counted(self.shards, "shard") + (f", {self.free} free" if self.free else "")
        parts = [counted(len(self.workers), "worker"), shards]
        if self.model:
            fetches = counted(self.behind, "fetch").replace("hs", "hes")
            parts.append(f"lesson {self.model}, begun {fetches} ago")
        lines = [f"{self.about}: {self.state}", ", ".join(crawl), ", ".join(parts)]
        if self.gone:
            words = ", ".join(f"{n:,} {state}" for state, n in self.gone.items())
            lines.append(f"earlier workers: {words}, {self.gone_fetched:,} fetched")
        if self.workers:
            lines += table([_HEADING, *(each.cells() for each in self.workers)], {1, 2})
        return "\n".join(lines)

    def plain(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return asdict(self)


def _state(store: CrawlStore, alive: list[Worker], *, paused: bool, fetched: int) -> str:
    if alive:
        if all(each.stop for each in alive):
            return "ending"
        if paused:
            return "paused" if all(each.paused for each in alive) else "pausing"
        return "crawling"
    reason = last_reason(store)
    words = "killed; the same command goes on from here"
    if reason is not None:
        words = in_words(reason, fetched)
    elif not fetched and not [*store.rows(sa.select(schema.events.c.id).limit(1))]:
        words = "never began"
    return f"{words}; who joins is paused" if paused else words


def _worker(
    each: Worker,
    pages: list[tuple[datetime, float]],
    now: datetime,
    trainer: int | None,
    *,
    paused: bool,
) -> SharedWorkerStatus:
    last = [relevance for _, relevance in pages[:RECENT]]
    times = sorted((time for time, _ in pages), reverse=True)
    return SharedWorkerStatus(
        id=each.id,
        name=each.name,
        state=_does(each, paused=paused),
        since=each.since,
        heard=each.heard,
        lease_left=each.lease_left,
        fetched=each.fetched,
        outstanding=each.outstanding,
        in_flight=each.in_flight,
        pages_per_second=rate(times, now),
        harvest_rate=sum(last) / len(last) if last else None,
        idle=(now - times[0]).total_seconds() if times else None,
        shards=each.shards,
        queued=each.queued,
        unread=each.unread,
        model_version=each.model_version,
        trains=each.id == trainer,
        budget=each.budget,
    )


def _does(each: Worker, *, paused: bool) -> str:
    if not each.alive:
        return "silent"
    if each.stop:
        return "ending"
    if each.paused:
        return "paused"
    if paused:
        return "pausing"
    # a worker of an earlier version tells nothing of what it has taken in, but its requests
    return "loading" if each.unread is None and each.in_flight is not None else "crawling"


def _last_pages(store: CrawlStore, fetched: int) -> defaultdict[int, list[tuple[datetime, float]]]:
    """Return time and relevance of the last pages of each worker, the last one first."""
    p = schema.page.c
    last = (
        sa.select(p.worker, p.fetched_at, p.relevance)
        .where(p.seq > fetched - MINUTE_ROWS)
        .order_by(p.seq.desc())
    )
    pages: defaultdict[int, list[tuple[datetime, float]]] = defaultdict(list)
    for row in store.rows(last):
        pages[row.worker].append((datetime.fromisoformat(row.fetched_at), row.relevance))
    return pages


def _queued(store: CrawlStore) -> int:
    waiting = sa.select(sa.func.count().label("n")).where(schema.url.c.state == schema.QUEUED)
    (row,) = store.rows(waiting)
    return int(row.n)


def _gone(store: CrawlStore) -> list[tuple[str, int, int]]:
    """Return (state, workers, fetches) of those that left and those that were lost."""
    w = worker_tables.worker.c
    n, fetched = sa.func.count().label("n"), sa.func.sum(w.fetched).label("fetched")
    groups = sa.select(w.state, n, fetched)
    rows = store.rows(
        groups.where(w.state != worker_tables.ALIVE).group_by(w.state).order_by(w.state)
    )
    return [(row.state, row.n, int(row.fetched)) for row in rows]


def _one(store: CrawlStore, *columns: sa.ColumnElement[Any]) -> sa.Row[Any]:
    (row,) = store.rows(sa.select(*columns))
    return row
