"""How a crawl is doing at this moment, by its store alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from focuscrawl.report.completeness import estimates_of
from focuscrawl.report.plain_text import counted, one_line, table
from focuscrawl.report.stop_reasons import BREAK, PAUSED, run_state
from focuscrawl.report.summary import RECENT, newest_lesson
from focuscrawl.store import schema
from focuscrawl.store.worker_registry import is_shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.store import CrawlStore

_MINUTE = timedelta(minutes=1)
#: of the last fetches, at most, that a rate is taken from; more only make the minute shorter
MINUTE_ROWS = 2_000


@dataclass(frozen=True)
class Recent:
    """How fast somebody fetches, and how well, of late.

    Attributes
    ----------
    pages_per_second : in the last minute
    harvest_rate : mean relevance of the last `RECENT` fetches; None before the first
    idle : seconds since the last fetch; None before the first
    """

    pages_per_second: float
    harvest_rate: float | None
    idle: float | None

    @classmethod
    def of(cls, pages: Sequence[tuple[datetime, float]], now: datetime) -> Recent:
        """Measure it by times and relevance of the last pages, the last one first."""
        times = sorted((time for time, _ in pages), reverse=True)
        last = [relevance for _, relevance in pages[:RECENT]]
        return Recent(
            pages_per_second=rate(times, now),
            harvest_rate=sum(last) / len(last) if last else None,
            idle=(now - times[0]).total_seconds() if times else None,
        )

    def recent_cells(self) -> list[str]:
        """Return what is shown of it, under `RECENT_HEADING`."""
        return [
            f"{self.pages_per_second:.1f}",
            "-" if self.harvest_rate is None else f"{self.harvest_rate:.3f}",
            "-" if self.idle is None else f"{in_brief(self.idle)} ago",
        ]


RECENT_HEADING = ["pages/s", f"last {RECENT}", "last fetch"]


@dataclass(frozen=True)
class WorkerStatus(Recent):
    """One process that crawls.

    Attributes
    ----------
    name : what to call it
    state : see `Status`
    fetched : fetches, those of earlier runs included
    """

    name: str
    state: str
    fetched: int


@dataclass(frozen=True)
class Status:
    """A crawl and those who work on it.

    Attributes
    ----------
    about : topic, strategy and web in a line
    running : a process has the crawl's folder
    state : of the crawl, see `focuscrawl.report.stop_reasons.RunState`
    fetched, harvest_rate : of the whole crawl
    waiting, hosts : URLs that wait, and on how many hosts
    model : lessons learned; 0 where the strategy learns nothing
    behind : fetches since the newest lesson was begun
    recall : its own estimate of how much of what is in reach is here, with its 90 % interval:
        (estimate, low, high); None before the first
    workers : one where a process crawls alone
    """

    about: str
    running: bool
    state: str
    fetched: int
    harvest_rate: float
    waiting: int
    hosts: int
    model: int
    behind: int
    recall: tuple[float, float, float] | None
    workers: list[WorkerStatus]

    @classmethod
    def of(cls, store: CrawlStore, *, now: datetime | None = None) -> Status:
        """Read how a crawl in a folder is doing.

        Parameters
        ----------
        now : the time it is; None: now
        """
        running, state = run_state(store)
        p, u = schema.page.c, schema.url.c
        fetched, mean = store.row(sa.select(sa.func.count(), sa.func.avg(p.relevance)))
        hosts_of = sa.func.count(sa.distinct(u.host))
        queued = sa.select(sa.func.count(), hosts_of).where(u.state == schema.QUEUED)
        waiting, hosts = store.row(queued)
        version, begun = newest_lesson(store)
        complete = next(reversed(estimates_of(store)), None)
        recent = Recent.of(last_pages(store, fetched)[None], now or datetime.now(UTC))
        return cls(
            about=of_whom(store),
            running=running,
            state=state,
            fetched=fetched,
            harvest_rate=mean or 0.0,
            waiting=waiting,
            hosts=hosts,
            model=version,
            behind=fetched - begun,
            recall=None if complete is None else (complete.recall, *complete.interval),
            workers=[WorkerStatus(**vars(recent), name="alone", state=state, fetched=fetched)],
        )

    @property
    def paused(self) -> bool:
        """True while a person has paused it."""
        return self.state == PAUSED

    @property
    def ended(self) -> bool:
        """True if nobody crawls."""
        return not self.running

    def text(self) -> str:
        """Return a table of the workers, with the crawl in two lines above it."""
        rows = [["worker", "state", "fetches", *RECENT_HEADING]]
        rows += [
            [worker.name, worker.state, f"{worker.fetched:,}", *worker.recent_cells()]
            for worker in self.workers
        ]
        crawl = [
            f"{self.fetched:,} fetched",
            f"harvest rate {self.harvest_rate:.3f}",
            f"{self.waiting:,} URLs wait on {counted(self.hosts, 'host')}",
            *lesson_in_words(self.model, self.behind),
        ]
        if self.recall is not None:
            recall, low, high = self.recall
            crawl.insert(2, f"recall about {recall:.2f} ({low:.2f} to {high:.2f})")
        return "\n".join([f"{self.about}: {self.state}", ", ".join(crawl), *table(rows, {0, 1})])

    def plain(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return asdict(self)


def of_whom(store: CrawlStore) -> str:
    """Return strategy, topic and web of a crawl in a line."""
    identity = store.identity()
    keys = ("strategy", "topic", "web_name")
    return "{} of {} on {}".format(*(one_line(identity.get(key, "?"), 60) for key in keys))


def lesson_in_words(model: int, behind: int) -> list[str]:
    """Say which lesson was the last; nothing where the strategy learns nothing."""
    return [f"lesson {model}, begun {counted(behind, 'fetch')} ago"] if model else []


def last_pages(
    store: CrawlStore, fetched: int
) -> defaultdict[int | None, list[tuple[datetime, float]]]:
    """Return time and relevance of the last pages of each worker, the last one first.

    The number of a process that crawls alone is None.
    """
    p = schema.page.c
    worker = p.worker if is_shared(store) else sa.null().label("worker")
    last = sa.select(worker, p.fetched_at, p.relevance)
    last = last.where(p.seq > fetched - MINUTE_ROWS).order_by(p.seq.desc())
    pages: defaultdict[int | None, list[tuple[datetime, float]]] = defaultdict(list)
    for row in store.rows(last):
        pages[row.worker].append((datetime.fromisoformat(row.fetched_at), row.relevance))
    return pages


def rate(times: list[datetime], now: datetime) -> float:
    """Return fetches a second over the last minute, or as far back as `times` go, newest first.

    A crawl that began less than a minute ago is measured from its first fetch.
    """
    recent = [time for time in times if now - time <= _MINUTE]
    if not recent:
        return 0.0
    earlier = len(times) > len(recent) and times[len(recent) - 1] - times[len(recent)] < BREAK
    span = _MINUTE if earlier else now - recent[-1]
    return len(recent) / max(span.total_seconds(), 1.0)


def in_brief(seconds: float) -> str:
    """Return a span of time in few characters."""
    seconds = max(seconds, 0.0)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return str(timedelta(seconds=round(seconds)))
