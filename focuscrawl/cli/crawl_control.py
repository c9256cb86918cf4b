"""Crawls that people ask something of: those of one process, and those that workers share."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.remote_control import Command, FileControl
from focuscrawl.report.stores import open_store, status_of
from focuscrawl.store.postgres import is_database_url, read_database, read_database_url
from focuscrawl.store.worker_registry import ask_pause, ask_stop, is_paused, read_workers

if TYPE_CHECKING:
    from focuscrawl.report.shared_status import SharedStatus
    from focuscrawl.report.status import Status
    from focuscrawl.store.postgres import DatabaseStore
    from focuscrawl.store.worker_registry import Worker


class Asked(Protocol):
    """A crawl of which something is asked.

    Attributes
    ----------
    name : to show
    """

    name: str

    @property
    def wanted(self) -> Command:
        """What is asked at the moment."""
        ...

    @property
    def in_use(self) -> bool:
        """True while somebody crawls."""
        ...

    @property
    def resumed(self) -> bool:
        """True if nobody is paused any more."""
        ...

    @property
    def stopped(self) -> bool:
        """True if all who were asked to stop have ended."""
        ...

    def ask(self, wanted: Command) -> None:
        """Ask for something."""
        ...

    def status(self) -> Status | SharedStatus:
        """Return how it is doing."""
        ...


def ask_of(crawl: str) -> Asked:
    """Return the crawl called so; UserError if there is none."""
    open_store(crawl).close()
    return _Shared(crawl) if is_database_url(crawl) else _Alone(crawl)


class _Alone:
    def __init__(self, crawl: str) -> None:
        self._folder = CrawlFolder(Path(crawl))
        self._control = FileControl(self._folder.path)
        self.name = self._control.name

    @property
    def wanted(self) -> Command:
        return self._control.wanted

    @property
    def in_use(self) -> bool:
        return self._folder.in_use

    @property
    def resumed(self) -> bool:
        return not self.status().paused

    @property
    def stopped(self) -> bool:
        return not self.in_use

    def ask(self, wanted: Command) -> None:
        self._control.ask(wanted)

    def status(self) -> Status | SharedStatus:
        return status_of(self._folder.path)


class _Shared:
    def __init__(self, crawl: str) -> None:
        self._url = crawl
        self._database = read_database_url(crawl)
        self.name = self._database.shown

    @property
    def wanted(self) -> Command:
        with closing(self._store()) as store:
            return Command.PAUSE if is_paused(store) else Command.RUN

    @property
    def in_use(self) -> bool:
        return bool(self._alive())

    @property
    def resumed(self) -> bool:
        return not any(each.paused for each in self._alive())

    @property
    def stopped(self) -> bool:
        return not any(each.stop for each in self._alive())

    def ask(self, wanted: Command) -> None:
        with closing(self._store()) as store:
            if wanted is Command.STOP:
                ask_stop(store)
            else:
                ask_pause(store, paused=wanted is Command.PAUSE)

    def status(self) -> Status | SharedStatus:
        return status_of(self._url)

    def _alive(self) -> list[Worker]:
        with closing(self._store()) as store:
            return [each for each in read_workers(store) if each.alive]

    def _store(self) -> DatabaseStore:
        return read_database(self._database)
