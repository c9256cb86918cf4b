"""Reads the status of crawls, and sends commands such as pause to running crawls."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.crawl_folder import FileControl
from focuscrawl.crawl.target_pages import count_targets
from focuscrawl.report.outcomes import MAX_GAP, PAUSED, run_state
from focuscrawl.report.plain_text import one_line, pluralize
from focuscrawl.report.summary import RECENT, latest_model, load_estimates
from focuscrawl.store import CrawlStore
from focuscrawl.store.schema import QUEUED

if TYPE_CHECKING:
    from focuscrawl.completeness.recall_estimate import TargetCounts


_MINUTE = timedelta(minutes=1)
#: largest number of fetches that the speed is measured on; a faster crawl is measured on less than
#: a minute
RATE_FETCHES = 2_000


@dataclass(frozen=True)
class RecentSpeed:
    """Speed and harvest rate of the latest fetches of a crawl."""

    pages_per_second: float  #: fetches a second in the last minute
    #: mean relevance of the last `RECENT` fetches; None before the first fetch
    harvest_rate: float | None
    idle: float | None  #: seconds since the last fetch; None before the first fetch

    @classmethod
    def of(cls, pages: Sequence[tuple[datetime, float]], now: datetime) -> RecentSpeed:
        """Measure speed and harvest rate from the times and relevance of the latest fetches."""
        times = sorted((time for time, _ in pages), reverse=True)
        last = [relevance for _, relevance in pages[:RECENT]]
        return RecentSpeed(
            pages_per_second=fetch_rate(times, now),
            harvest_rate=sum(last) / len(last) if last else None,
            idle=(now - times[0]).total_seconds() if times else None,
        )

    def describe(self) -> str:
        """Return a line with the speed, the harvest rate and the time since the last fetch."""
        rate = "-" if self.harvest_rate is None else f"{self.harvest_rate:.3f}"
        ago = "-" if self.idle is None else f"{format_duration(self.idle)} ago"
        return (
            f"{self.pages_per_second:.1f} pages/s in the last minute, harvest rate of the last "
            f"{RECENT} {rate}, last fetch {ago}"
        )


@dataclass(frozen=True)
class Status:
    """The status of a crawl, as printed by ``focuscrawl status``."""

    about: str  #: topic, strategy and web in a line
    running: bool  #: a process holds the lock of the crawl's folder
    state: str  #: state of the crawl, see `focuscrawl.report.outcomes.RunState`
    fetched: int  #: fetches of all runs
    harvest_rate: float  #: mean relevance of all fetches
    waiting: int  #: queued URLs
    hosts: int  #: hosts of the queued URLs
    model: int  #: version of the latest model; 0 for a strategy without training
    behind: int  #: fetches since the training of the latest model started
    #: latest estimate of recall, and the ends of its 90 % interval
    recall: tuple[float, float, float] | None
    targets: TargetCounts | None  #: counts of the target pages, if there are any
    recent: RecentSpeed  #: speed and harvest rate of the latest fetches

    @classmethod
    def of(cls, store: CrawlStore, *, now: datetime | None = None) -> Status:
        """Read the status of a crawl from its store; `now` replaces the current time in tests."""
        running, state = run_state(store)
        fetched, mean = store.row("SELECT count(*), avg(relevance) FROM page")
        queued = "SELECT count(*), count(DISTINCT host) FROM url WHERE state = ?"
        waiting, hosts = store.row(queued, (QUEUED,))
        version, begun = latest_model(store)
        complete = next(reversed(load_estimates(store)), None)
        recent = RecentSpeed.of(latest_fetches(store, fetched), now or datetime.now(UTC))
        return cls(
            about=crawl_title(store),
            running=running,
            state=state,
            fetched=fetched,
            harvest_rate=mean or 0.0,
            waiting=waiting,
            hosts=hosts,
            model=version,
            behind=fetched - begun,
            recall=None if complete is None else (complete.recall, *complete.interval),
            targets=count_targets(store, Path(store.location).parent),
            recent=recent,
        )

    @property
    def is_paused(self) -> bool:
        """True while the crawl is paused."""
        return self.state == PAUSED

    @property
    def is_stopped(self) -> bool:
        """True if no process runs the crawl."""
        return not self.running

    def text(self) -> str:
        """Return the status for a terminal, in three lines."""
        crawl = [
            f"{self.fetched:,} fetched",
            f"harvest rate {self.harvest_rate:.3f}",
            f"{pluralize(self.waiting, 'URL')} queued on {pluralize(self.hosts, 'host')}",
            *describe_model(self.model, self.behind),
        ]
        if self.recall is not None:
            recall, low, high = self.recall
            interval = f"{100 * low:.0f}–{100 * high:.0f} %"
            crawl.insert(2, f"estimated recall {100 * recall:.0f} % ({interval}), a guess")
        if self.targets is not None:
            crawl.insert(2, self.targets.describe())
        return "\n".join([f"{self.about}: {self.state}", ", ".join(crawl), self.recent.describe()])

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as JSON-serializable values."""
        return asdict(self)


def crawl_title(store: CrawlStore) -> str:
    """Return a line with the strategy, the topic and the web of a crawl."""
    identity = store.identity()
    keys = ("strategy", "topic", "web_name")
    return "{} of {} on {}".format(*(one_line(identity.get(key, "?"), 60) for key in keys))


def describe_model(model: int, behind: int) -> list[str]:
    """Return a list with a text about the latest model, or an empty list without a model."""
    return [f"model {model}, trained {pluralize(behind, 'fetch')} ago"] if model else []


def latest_fetches(store: CrawlStore, fetched: int) -> list[tuple[datetime, float]]:
    """Return the time and the relevance of each of the latest fetches, newest first."""
    last = "SELECT fetched_at, relevance FROM page WHERE seq > ? ORDER BY seq DESC"
    rows = store.rows(last, (fetched - RATE_FETCHES,))
    return [(datetime.fromisoformat(at), relevance) for at, relevance in rows]


def fetch_rate(times: list[datetime], now: datetime) -> float:
    """Return the number of fetches per second in the last minute.

    Parameters
    ----------
    times : list of datetime
        Times of the latest fetches, newest first. If the crawl started less than a minute ago, or
        `times` are of less than a minute, the speed is measured from the oldest of them.
    """
    recent = [time for time in times if now - time <= _MINUTE]
    if not recent:
        return 0.0
    earlier = len(times) > len(recent) and times[len(recent) - 1] - times[len(recent)] < MAX_GAP
    span = _MINUTE if earlier else now - recent[-1]
    return len(recent) / max(span.total_seconds(), 1.0)


def format_duration(seconds: float) -> str:
    """Return a duration as readable text."""
    seconds = max(seconds, 0.0)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return str(timedelta(seconds=round(seconds)))


def open_store(crawl_dir: str | os.PathLike[str]) -> CrawlStore:
    """Open the database of the crawl in the folder `crawl_dir`; the crawl may be running.

    Raises
    ------
    UserError
        The folder has no crawl, or no crawl that this version can read.
    """
    return CrawlStore.open(CrawlFolder(Path(crawl_dir)).store_path, read_only=True)


def status_of(crawl_dir: str | os.PathLike[str]) -> Status:
    """Return the status of the crawl in the folder `crawl_dir`."""
    with closing(open_store(crawl_dir)) as store:
        return Status.of(store)


@dataclass(frozen=True)
class CurrentState:
    """The attributes of a crawl's `Status` that are fast to read, even for a large crawl."""

    running: bool
    about: str
    state: str
    fetched: int
    last_fetch: datetime | None  #: time of the last fetch in UTC
    recent: RecentSpeed

    @classmethod
    def of(cls, store: CrawlStore, *, now: datetime) -> CurrentState:
        """Read the state of a crawl from its store; `now` is the current time."""
        running, state = run_state(store)
        (fetched,) = store.row("SELECT coalesce(max(seq), 0) FROM page")
        pages = latest_fetches(store, fetched)
        return cls(
            running=running,
            about=crawl_title(store),
            state=state,
            fetched=fetched,
            last_fetch=pages[0][0] if pages else None,
            recent=RecentSpeed.of(pages, now),
        )


def open_control(crawl: str) -> FileControl:
    """Return an object that controls the crawl in the folder `crawl`."""
    open_store(crawl).close()
    return FileControl(Path(crawl))
