"""Scrapyd's launcher, with jobs that outlast a restart of Scrapyd.

What runs is noted in ``dbs/running.db``. Told to end, Scrapyd has its crawls end in order, and
waits for them; started again, it has them go on, whether they ended in order or not. A job keeps
its number, its log and its items. A job that was cancelled or came to its end does not come back.
"""

from __future__ import annotations

from typing import Any

from scrapyd import launcher, sqlite
from scrapyd.interfaces import ISpiderScheduler
from twisted.internet.defer import Deferred, DeferredList


class Launcher(launcher.Launcher):  # type: ignore[misc]
    """Notes what it starts, and schedules again what has not come to its end."""

    def __init__(self, config: Any, app: Any) -> None:
        super().__init__(config, app)
        self._begun = sqlite.initialize(
            sqlite.JsonSqlitePriorityQueue, config, "running", "running"
        )
        self._ends = False

    def startService(self) -> None:  # noqa: N802 - Twisted's name
        """Schedule what ran when Scrapyd ended, and start to work."""
        scheduler = self.app.getComponent(ISpiderScheduler)
        for job, _ in list(self._begun):
            project, spider = job.pop("_project"), job.pop("_spider")
            if project in scheduler.list_projects():
                scheduler.schedule(project, spider, **job)
        self._begun.clear()
        super().startService()

    def stopService(self) -> Deferred[Any]:  # noqa: N802
        """Have all crawls end; wait until they have."""
        self._ends = True
        ended = [process.deferred for process in self.processes.values()]
        for process in self.processes.values():
            process.transport.signalProcess("TERM")
        return DeferredList(ended)

    def _spawn_process(self, message: dict[str, Any], slot: int) -> None:
        self._begun.put(message)
        super()._spawn_process(message, slot)

    def _process_finished(self, result: Any, slot: int) -> None:
        if self._ends:
            return  # it is to go on
        job = self.processes[slot].job
        self._begun.remove(lambda message: message["_job"] == job)
        super()._process_finished(result, slot)
