"""How crawls are doing, by their stores; pause, resume, budget, stop."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.crawl_folder import Command, CrawlPhase, FileControl
from focuscrawl.report.outcomes import MAX_GAP, PAUSED, run_state
from focuscrawl.report.plain_text import one_line, pluralize
from focuscrawl.report.summary import RECENT, latest_model, load_estimates
from focuscrawl.store import CrawlStore
from focuscrawl.store.schema import QUEUED

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence


_MINUTE = timedelta(minutes=1)
#: of the last fetches, at most, that a rate is taken from; more only make the minute shorter
RATE_FETCHES = 2_000


@dataclass(frozen=True)
class RecentSpeed:
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
    def of(cls, pages: Sequence[tuple[datetime, float]], now: datetime) -> RecentSpeed:
        """Measure it by times and relevance of the last pages, the last one first."""
        times = sorted((time for time, _ in pages), reverse=True)
        last = [relevance for _, relevance in pages[:RECENT]]
        return RecentSpeed(
            pages_per_second=fetch_rate(times, now),
            harvest_rate=sum(last) / len(last) if last else None,
            idle=(now - times[0]).total_seconds() if times else None,
        )

    def describe(self) -> str:
        """Say it in a line."""
        rate = "-" if self.harvest_rate is None else f"{self.harvest_rate:.3f}"
        ago = "-" if self.idle is None else f"{format_duration(self.idle)} ago"
        return (
            f"{self.pages_per_second:.1f} pages/s in the last minute, harvest rate of the last "
            f"{RECENT} {rate}, last fetch {ago}"
        )


@dataclass(frozen=True)
class Status:
    """A crawl.

    Attributes
    ----------
    about : topic, strategy and web in a line
    running : a process has the crawl's folder
    state : of the crawl, see `focuscrawl.report.outcomes.RunState`
    fetched, harvest_rate : of the whole crawl
    waiting, hosts : URLs that wait, and on how many hosts
    model : lessons learned; 0 where the strategy learns nothing
    behind : fetches since the newest lesson was begun
    recall : its own estimate of how much of what is in reach is here, with its 90 % interval:
        (estimate, low, high); None before the first
    recent : how fast it fetches, and how well, of late
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
    recent: RecentSpeed

    @classmethod
    def of(cls, store: CrawlStore, *, now: datetime | None = None) -> Status:
        """Read how a crawl in a folder is doing.

        Parameters
        ----------
        now : the time it is; None: now
        """
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
            recent=recent,
        )

    @property
    def is_paused(self) -> bool:
        """True while a person has paused it."""
        return self.state == PAUSED

    @property
    def is_stopped(self) -> bool:
        """True if nobody crawls."""
        return not self.running

    def text(self) -> str:
        """Return it in three lines."""
        crawl = [
            f"{self.fetched:,} fetched",
            f"harvest rate {self.harvest_rate:.3f}",
            f"{self.waiting:,} URLs wait on {pluralize(self.hosts, 'host')}",
            *describe_model(self.model, self.behind),
        ]
        if self.recall is not None:
            recall, low, high = self.recall
            crawl.insert(2, f"recall about {recall:.2f} ({low:.2f} to {high:.2f})")
        return "\n".join([f"{self.about}: {self.state}", ", ".join(crawl), self.recent.describe()])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return asdict(self)


def crawl_title(store: CrawlStore) -> str:
    """Return strategy, topic and web of a crawl in a line."""
    identity = store.identity()
    keys = ("strategy", "topic", "web_name")
    return "{} of {} on {}".format(*(one_line(identity.get(key, "?"), 60) for key in keys))


def describe_model(model: int, behind: int) -> list[str]:
    """Say which lesson was the last; nothing where the strategy learns nothing."""
    return [f"lesson {model}, begun {pluralize(behind, 'fetch')} ago"] if model else []


def latest_fetches(store: CrawlStore, fetched: int) -> list[tuple[datetime, float]]:
    """Return time and relevance of the last pages, the last one first."""
    last = "SELECT fetched_at, relevance FROM page WHERE seq > ? ORDER BY seq DESC"
    rows = store.rows(last, (fetched - RATE_FETCHES,))
    return [(datetime.fromisoformat(at), relevance) for at, relevance in rows]


def fetch_rate(times: list[datetime], now: datetime) -> float:
    """Return fetches a second over the last minute, or as far back as `times` go, newest first.

    A crawl that began less than a minute ago is measured from its first fetch.
    """
    recent = [time for time in times if now - time <= _MINUTE]
    if not recent:
        return 0.0
    earlier = len(times) > len(recent) and times[len(recent) - 1] - times[len(recent)] < MAX_GAP
    span = _MINUTE if earlier else now - recent[-1]
    return len(recent) / max(span.total_seconds(), 1.0)


def format_duration(seconds: float) -> str:
    """Return a span of time in few characters."""
    seconds = max(seconds, 0.0)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return str(timedelta(seconds=round(seconds)))


def open_store(crawl_dir: str | os.PathLike[str]) -> CrawlStore:
    """Open the store of the crawl kept in `crawl_dir`, which may be running.

    Parameters
    ----------
    crawl_dir : the folder

    Raises
    ------
    UserError
        There is no crawl, or none this version can read.
    """
    return CrawlStore.open(CrawlFolder(Path(crawl_dir)).store_path, read_only=True)


def status_of(crawl_dir: str | os.PathLike[str]) -> Status:
    """Return how a crawl is doing; takes and raises what `open_store` does."""
    with closing(open_store(crawl_dir)) as store:
        return Status.of(store)


@dataclass(frozen=True)
class CurrentState:
    """A crawl, without any sum over all of its pages or URLs.

    Attributes
    ----------
    running : somebody crawls
    about : topic, strategy and web in a line
    state : see `focuscrawl.report.outcomes.RunState`
    fetched : fetches
    last_fetch : when, in UTC; None before the first
    recent : how fast it fetches, and how well, of late
    """

    running: bool
    about: str
    state: str
    fetched: int
    last_fetch: datetime | None
    recent: RecentSpeed

    @classmethod
    def of(cls, store: CrawlStore, *, now: datetime) -> CurrentState:
        """Read one kept in a folder; parameters are those of `report.status.Status.of`."""
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


def open_control(crawl: str) -> ControlledCrawl:
    """Return the crawl called so; UserError if there is none."""
    open_store(crawl).close()
    return ControlledCrawl(crawl)


class ControlledCrawl:
    """A crawl in a folder, running or not, and what is asked of it.

    Attributes
    ----------
    name : to show
    """

    def __init__(self, crawl: str) -> None:
        self.name = crawl
        self._folder = CrawlFolder(Path(crawl))
        self._control = FileControl(Path(crawl))
        self.ask, self.extend = self._control.send, self._control.set_budget

    @property
    def wanted(self) -> Command:
        """What is asked at the moment."""
        return self._control.command

    @property
    def in_use(self) -> bool:
        """True while somebody crawls."""
        return self._folder.in_use

    @property
    def is_starting(self) -> bool:
        """True while a process begins to crawl: what it is asked now it takes for earlier."""
        return self._folder.phase is CrawlPhase.STARTING

    @property
    def is_extending(self) -> bool:
        """True while it has not taken another budget in."""
        return self._control.budget is not None

    def status(self) -> Status:
        """Return how it is doing."""
        return status_of(self.name)
