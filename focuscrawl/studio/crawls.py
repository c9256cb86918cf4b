"""Crawls by name: those in the folder that is served."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from focuscrawl.report.crawl_control import ControlledCrawl
from focuscrawl.report.current_state import CurrentState

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.store import CrawlStore


@dataclass(frozen=True)
class NamedCrawl:
    """A crawl, and where it is.

    Attributes
    ----------
    name : in addresses and for people
    place : its folder
    """

    name: str
    place: Path

    @property
    def control(self) -> ControlledCrawl:
        """By which it is asked to pause, to end, ..."""
        return ControlledCrawl(str(self.place))

    def current(self, store: CrawlStore) -> CurrentState:
        """Read how it is doing from its store, which is open."""
        now = datetime.now(UTC)
        return CurrentState.of(store, now=now)
