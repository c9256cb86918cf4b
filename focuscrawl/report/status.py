"""How crawls are doing, by their stores; pause, resume, budget, stop."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.crawl_folder import Command, CrawlPhase, FileControl
from focuscrawl.report.outcomes import BREAK, PAUSED, run_state
from focuscrawl.report.plain_text import counted, one_line
from focuscrawl.report.summary import RECENT, estimates_of, newest_lesson
from focuscrawl.store import CrawlStore
from focuscrawl.store.schema import QUEUED

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence


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

    def in_words(self) -> str:
        """Say it in a line."""
        rate = "-" if self.harvest_rate is None else f"{self.harvest_rate:.3f}"
        ago = "-" if self.idle is None else f"{in_brief(self.idle)} ago"
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
    recent: Recent

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
        version, begun = newest_lesson(store)
        complete = next(reversed(estimates_of(store)), None)
        recent = Recent.of(last_pages(store, fetched), now or datetime.now(UTC))
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
            recent=recent,
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
        """Return it in three lines."""
        crawl = [
            f"{self.fetched:,} fetched",
            f"harvest rate {self.harvest_rate:.3f}",
            f"{self.waiting:,} URLs wait on {counted(self.hosts, 'host')}",
            *lesson_in_words(self.model, self.behind),
        ]
        if self.recall is not None:
            recall, low, high = self.recall
            crawl.insert(2, f"recall about {recall:.2f} ({low:.2f} to {high:.2f})")
        return "\n".join([f"{self.about}: {self.state}", ", ".join(crawl), self.recent.in_words()])

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


def last_pages(store: CrawlStore, fetched: int) -> list[tuple[datetime, float]]:
    """Return time and relevance of the last pages, the last one first."""
    last = "SELECT fetched_at, relevance FROM page WHERE seq > ? ORDER BY seq DESC"
    rows = store.rows(last, (fetched - MINUTE_ROWS,))
    return [(datetime.fromisoformat(at), relevance) for at, relevance in rows]


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
    recent: Recent

    @classmethod
    def of(cls, store: CrawlStore, *, now: datetime) -> CurrentState:
        """Read one kept in a folder; parameters are those of `report.status.Status.of`."""
        running, state = run_state(store)
        (fetched,) = store.row("SELECT coalesce(max(seq), 0) FROM page")
        pages = last_pages(store, fetched)
        return cls(
            running=running,
            about=of_whom(store),
            state=state,
            fetched=fetched,
            last_fetch=pages[0][0] if pages else None,
            recent=Recent.of(pages, now),
        )


def controlled(crawl: str) -> ControlledCrawl:
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
    def starting(self) -> bool:
        """True while a process begins to crawl: what it is asked now it takes for earlier."""
        return self._folder.phase is CrawlPhase.STARTING

    @property
    def extending(self) -> bool:
        """True while it has not taken another budget in."""
        return self._control.budget is not None

    def status(self) -> Status:
        """Return how it is doing."""
        return status_of(self.name)
