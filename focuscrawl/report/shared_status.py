"""How a crawl that workers share is doing at this moment, by its store alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from focuscrawl.report.plain_text import counted, one_line, table
from focuscrawl.report.status import (
    RECENT_HEADING,
    Recent,
    in_brief,
    last_pages,
    lesson_in_words,
    of_whom,
    rate,
)
from focuscrawl.report.stop_reasons import in_words, last_reason
from focuscrawl.report.summary import newest_lesson
from focuscrawl.store import schema, worker_tables
from focuscrawl.store.worker_registry import Worker, is_paused, read_workers

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore

_NAME = 28  # characters


@dataclass(frozen=True)
class SharedWorkerStatus(Recent):
    """One of several workers.

    Attributes
    ----------
    worker : what it says of itself
    state : ``crawling``, ``loading`` its shards, ``pausing``, ``paused``, ``ending``, ``silent``:
        its lease has run out, and nobody has taken over yet
    trains : it is the one that trains
    """

    worker: Worker
    state: str
    trains: bool

    def cells(self) -> list[str]:
        """Return what is shown of it, under `_HEADING`."""
        worker = self.worker
        return [
            f"{worker.id}",
            one_line(worker.name, _NAME),
            self.state,
            in_brief(worker.since),
            f"{worker.fetched:,}",
            *self.recent_cells(),
            f"{worker.shards}",
            f"{worker.queued:,}",
            "-" if worker.unread is None else f"{worker.unread:,}",
            f"{worker.model_version}{'*' if self.trains else ''}",
            f"{worker.heard:.1f} s ago",
            in_brief(worker.lease_left),
        ]

    def plain(self) -> dict[str, Any]:
        """Return everything as plain values; those of `worker` are not apart."""
        own = vars(self) | self.worker._asdict()
        del own["worker"]
        return own


_HEADING = ["id", "worker", "state", "since", "fetches", *RECENT_HEADING]
_HEADING += ["shards", "waiting", "unread", "model", "heard", "lease"]


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
        c, time = worker_tables.crawl.c, sa.func.clock_timestamp().label("time")
        now = store.row(sa.select(c.fetched, c.granted, c.relevance, c.trainer, time))
        workers, paused = read_workers(store), is_paused(store)
        alive = [each for each in workers if each.alive]
        model, begun = newest_lesson(store)
        by_worker, at = last_pages(store, now.fetched), now.time.astimezone(UTC)
        last = sorted((page for pages in by_worker.values() for page in pages), reverse=True)
        owner = worker_tables.shard.c.owner
        shards, held = store.row(sa.select(sa.func.count(), sa.func.count(owner)))
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
            shards=shards,
            free=shards - held,
            model=model,
            behind=now.fetched - begun,
            workers=[
                SharedWorkerStatus(
                    **vars(Recent.of(by_worker[each.id], at)),
                    worker=each,
                    state=_does(each, paused=paused),
                    trains=each.id == now.trainer,
                )
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
        lesson = lesson_in_words(self.model, self.behind)
        parts = [counted(len(self.workers), "worker"), shards, *lesson]
        lines = [f"{self.about}: {self.state}", ", ".join(crawl), ", ".join(parts)]
        if self.gone:
            words = ", ".join(f"{n:,} {state}" for state, n in self.gone.items())
            lines.append(f"earlier workers: {words}, {self.gone_fetched:,} fetched")
        if self.workers:
            lines += table([_HEADING, *(each.cells() for each in self.workers)], {1, 2})
        return "\n".join(lines)

    def plain(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return vars(self) | {"workers": [each.plain() for each in self.workers]}


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


def _queued(store: CrawlStore) -> int:
    waiting = sa.select(sa.func.count().label("n")).where(schema.url.c.state == schema.QUEUED)
    return int(store.row(waiting).n)


def _gone(store: CrawlStore) -> list[tuple[str, int, int]]:
    """Return (state, workers, fetches) of those that left and those that were lost."""
    w = worker_tables.worker.c
    n, fetched = sa.func.count().label("n"), sa.func.sum(w.fetched).label("fetched")
    groups = sa.select(w.state, n, fetched)
    rows = store.rows(
        groups.where(w.state != worker_tables.ALIVE).group_by(w.state).order_by(w.state)
    )
    return [(row.state, row.n, int(row.fetched)) for row in rows]
