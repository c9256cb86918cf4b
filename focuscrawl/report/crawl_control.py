"""Pause, resume, budget and stop of a crawl in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.folder import Doing
from focuscrawl.crawl.remote_control import Command, FileControl
from focuscrawl.report.stores import open_store, status_of

if TYPE_CHECKING:
    from focuscrawl.report.status import Status


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

    def status(self) -> Status:
        """Return how it is doing."""
        return status_of(self._crawl)
