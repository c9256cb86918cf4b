"""Obeys ``focuscrawl pause``, ``resume``, ``stop`` and ``extend`` while the engine runs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

from focuscrawl.crawl.remote_control import Command
from focuscrawl.engine.component import Component
from focuscrawl.engine.private import close_spider, wake

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class RemoteControlExtension(Component):
    """Looks at the crawl's `RemoteControl` every so often, and has the engine obey.

    Paused, the crawl finishes what is under way and fetches nothing more.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._control = self._crawl.control
        self._over = False
        self.paused = False

    def engine_started(self) -> None:
        """Begin to look; a stop or budget that an earlier run never saw is not meant for this."""
        self._control.obeyed(Command.STOP)
        earlier = self._control.budget
        if earlier is not None:
            self._control.extended(earlier)
        self._look()

    def spider_closed(self) -> None:
        """Look no more."""
        self._over = True

    def _look(self) -> None:
        if self._over:
            return
        wanted = self._control.wanted
        if wanted is Command.STOP:
            self._over = True
            self._control.obeyed(wanted)
            logger.info("asked to stop: waiting for what is under way")
            close_spider(self._crawler, "stopped")
            return
        call_later(self._control.every, self._look)
        budget = self._control.budget
        if budget is not None:
            self._extend(budget)
        if (wanted is Command.PAUSE) != self.paused:
            self._turn(wanted)

    def _extend(self, budget: int) -> None:
        self._control.extended(budget)
        self._crawl.extend(budget)
        logger.info("the budget is %s now", f"{budget:,} fetches" if budget else "without limit")
        wake(self._crawler)

    def _turn(self, wanted: Command) -> None:
        self.paused = wanted is Command.PAUSE
        self._control.obeyed(wanted)
        if self.paused:
            self._crawler.engine.pause()
            logger.info("paused, until `focuscrawl resume %s`", self._control.name)
        else:
            self._crawler.engine.unpause()
            wake(self._crawler)
            logger.info("resumed")
        self._crawl.note("paused" if self.paused else "resumed")
