"""Pause, resume, budget and stop of a crawl in a folder, or of the workers that share one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.folder import Doing
from focuscrawl.crawl.remote_control import Command, FileControl
from focuscrawl.errors import UserError
from focuscrawl.report.stores import open_store, status_of
from focuscrawl.store.postgres import is_database_url, read_database, read_database_url
from focuscrawl.store.worker_registry import ask_pause, ask_stop, is_paused, read_workers

if TYPE_CHECKING:
    from focuscrawl.report.shared_status import SharedStatus
    from focuscrawl.report.status import Status
    from focuscrawl.store.postgres import DatabaseStore
    from focuscrawl.store.worker_registry import Worker


def controlled(crawl: str) -> ControlledCrawl:
    """Return the crawl called so; UserError if there is none."""
    open_store(crawl).close()
    return ControlledWorkers(crawl) if is_database_url(crawl) else ControlledCrawl(crawl)


class ControlledCrawl:
    """A crawl in a folder, running or not, and what is asked of it.

    Attributes
    ----------
    name : to show
    """

    def __init__(self, crawl: str) -> None:
        self._crawl = self.name = crawl

    @property
    def wanted(self) -> Command:
        """What is asked at the moment."""
        return FileControl(Path(self._crawl)).wanted

    @property
    def in_use(self) -> bool:
        """True while somebody crawls."""
        return CrawlFolder(Path(self._crawl)).in_use

    @property
    def starting(self) -> bool:
        """True while a process begins to crawl: what it is asked now it takes for earlier."""
        return CrawlFolder(Path(self._crawl)).doing is Doing.STARTING

    @property
    def resumed(self) -> bool:
        """True if nobody is paused any more."""
        return not self.status().paused

    @property
    def stopped(self) -> bool:
        """True if all who were asked to stop have ended."""
        return not self.in_use

    def ask(self, wanted: Command) -> None:
        """Ask for something."""
        FileControl(Path(self._crawl)).ask(wanted)

    def extend(self, budget: int) -> None:
        """Give it another budget, 0 for none."""
        FileControl(Path(self._crawl)).extend(budget)

    @property
    def extending(self) -> bool:
        """True while it has not taken another budget in."""
        return FileControl(Path(self._crawl)).budget is not None

    def status(self) -> Status | SharedStatus:
        """Return how it is doing."""
        return status_of(self._crawl)


class ControlledWorkers(ControlledCrawl):
    """A crawl that workers share through a database, and what is asked of all of them."""

    def __init__(self, crawl: str) -> None:
        super().__init__(crawl)
        self._database = read_database_url(crawl)
        self.name = self._database.shown

    @property
    def wanted(self) -> Command:
        """A pause, or nothing: a stop is for the workers that are there."""
        with closing(self._store()) as store:
            return Command.PAUSE if is_paused(store) else Command.RUN

    @property
    def in_use(self) -> bool:
        """True while a worker is alive."""
        return bool(self._alive())

    @property
    def resumed(self) -> bool:
        """True if no worker is paused any more."""
        return not any(each.paused for each in self._alive())

    @property
    def stopped(self) -> bool:
        """True if all workers that were asked to stop have ended."""
        return not any(each.stop for each in self._alive())

    def ask(self, wanted: Command) -> None:
        """Ask all workers for something."""
        with closing(self._store()) as store:
            if wanted is Command.STOP:
                ask_stop(store)
            else:
                ask_pause(store, paused=wanted is Command.PAUSE)

    def extend(self, budget: int) -> None:
        """Refuse: workers have agreed on the budget."""
        raise UserError(
            f"{self.name} is shared by workers, which have agreed on its budget: end them, and "
            f"begin them anew with -a budget={budget}"
        )

    def _alive(self) -> list[Worker]:
        with closing(self._store()) as store:
            return [each for each in read_workers(store) if each.alive]

    def _store(self) -> DatabaseStore:
        return read_database(self._database)
