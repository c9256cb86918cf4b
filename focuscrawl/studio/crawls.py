"""Crawls by name: those in the folder that is served, and those that workers share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.report.crawl_control import ControlledCrawl, ControlledWorkers
from focuscrawl.report.current_state import CurrentState
from focuscrawl.store.postgres import read_database_url, shared_crawls

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.store import CrawlStore

SHARED = "postgresql:"  #: what the names of crawls in the database begin with


@dataclass(frozen=True)
class NamedCrawl:
    """A crawl, and where it is.

    Attributes
    ----------
    name : in addresses and for people
    place : its folder; of one that workers share, the URL of its database
    """

    name: str
    place: Path | str

    @property
    def shared(self) -> bool:
        """True if workers share it through a database."""
        return isinstance(self.place, str)

    @property
    def control(self) -> ControlledCrawl:
        """By which it is asked to pause, to end, ..."""
        if isinstance(self.place, str):
            return ControlledWorkers(self.place)
        return ControlledCrawl(str(self.place))

    def current(self, store: CrawlStore) -> CurrentState:
        """Read how it is doing from its store, which is open."""
        now = datetime.now(UTC)
        if isinstance(self.place, str):
            return CurrentState.of_workers(store, now=now)
        return CurrentState.of(store, now=now)


class SharedCrawls:
    """The crawls in a PostgreSQL database.

    Parameters
    ----------
    url : of the database; which crawl it names does not matter

    Raises
    ------
    UserError
        It is none, or has a password in it, which the command lines of workers would show.
    """

    def __init__(self, url: str) -> None:
        self._database = read_database_url(url)
        if self._database.url.password is not None:
            raise UserError(
                "store has a password, which the list of processes would show: put it into "
                "PGPASSWORD or ~/.pgpass, and leave it out here"
            )
        self._url = self._database.url.set(drivername="postgresql")

    @property
    def shown(self) -> str:
        """Which database it is."""
        return self._database.shown.partition("?")[0]

    def names(self) -> list[str]:
        """Return what the crawls are called; UserError: the server is away or says no."""
        return [f"{SHARED}{name}" for name in shared_crawls(self._database)]

    def crawl(self, name: str) -> NamedCrawl:
        """Return the crawl called so, whether there is one or not; UserError: none can be."""
        crawl = name.removeprefix(SHARED)
        url = self._url.update_query_dict({"crawl": crawl}).render_as_string(hide_password=False)
        read_database_url(url)
        return NamedCrawl(f"{SHARED}{crawl}", url)
