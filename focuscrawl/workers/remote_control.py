"""Pause and stop of the workers on a crawl, as a worker sees them: in the crawl's database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.crawl.remote_control import Command
from focuscrawl.workers.heartbeat import INTERVAL

if TYPE_CHECKING:
    from focuscrawl.crawl import Crawl
    from focuscrawl.workers.heartbeat import Heartbeat


class SharedControl:
    """The `RemoteControl` of a worker; its heartbeat reads what is asked.

    A pause is for all workers, those to come included; a stop for those that were there.

    Attributes
    ----------
    name, every : see `focuscrawl.crawl.remote_control.RemoteControl`
    paused : it has obeyed a pause
    """

    every = INTERVAL

    def __init__(self, crawl: Crawl, heartbeat: Heartbeat) -> None:
        self.name = str(crawl.plan.store)
        self._crawl, self._heartbeat = crawl, heartbeat
        self.paused = False

    @property
    def wanted(self) -> Command:
        """What is asked at the moment; a worker that cannot go on is let end."""
        state = self._heartbeat.state
        if self._crawl.store_failure is not None or self._crawl.stop_reason == "error":
            return Command.RUN
        if state.stop:
            return Command.STOP
        return Command.PAUSE if state.paused else Command.RUN

    def obeyed(self, wanted: Command) -> None:
        """Let the others know."""
        self.paused = wanted is Command.PAUSE
