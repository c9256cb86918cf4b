"""Pause, resume and stop: by commands of people, bounded in time, with the crawl's own reason."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from scrapy.exceptions import CloseSpider, NotConfigured
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError

from focuscrawl.crawl.crawl_folder import Command
from focuscrawl.engine.component import Component
from focuscrawl.engine.private import (
    close_spider,
    has_start_failed,
    is_closing,
    wake,
    wrap_downloads,
)
from focuscrawl.errors import RequestCancelledError
from focuscrawl.report.plain_text import counted

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.internet.defer import Deferred

    from focuscrawl.engine.private import Download


logger = logging.getLogger(__name__)

_EVERY = 0.5  # seconds between two looks


class BoundedStop(Component):
    """Cancels downloads that take long once the spider is closing; their URLs are queued again.

    Scrapy waits for every request in flight, up to ``DOWNLOAD_TIMEOUT`` and as long again for
    each retry; here ``FOCUSCRAWL_STOP_TIMEOUT`` seconds at most. A recording answers at once; only
    texts can take long there.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if self._crawl.web is not None and not self._crawl.config.text:
            raise NotConfigured
        self._grace = self._crawl.config.stop_timeout
        self._under_way: set[Deferred[Response]] = set()
        self._given_up = False
        self._over = False

    def engine_started(self) -> None:
        """Wrap the download handlers, whichever they are."""
        if self._crawl.web is None:
            wrap_downloads(self._crawler, self._download)
        self._look(None)

    def spider_closed(self) -> None:
        """Stop looking."""
        self._over = True

    def _look(self, closing_since: float | None) -> None:
        if self._over:
            return
        if closing_since is None and is_closing(self._crawler):
            closing_since = time.monotonic()
        if closing_since is not None and time.monotonic() - closing_since >= self._grace:
            self._give_up()
        else:
            call_later(_EVERY, self._look, closing_since)

    def _give_up(self) -> None:
        self._given_up = True
        if self._under_way:
            logger.info("gave up %s, queued again", counted(len(self._under_way), "request"))
        for download in list(self._under_way):
            download.cancel()
        self._context.parsing.cancel()
        self._context.rendering.cancel()
        self._context.texts.cancel()

    async def _download(self, download: Download, request: Request) -> Response:
        if self._given_up:
            raise RequestCancelledError("the crawl ends")
        under_way: Deferred[Response] = deferred_from_coro(download(request))
        self._under_way.add(under_way)
        try:
            return await maybe_deferred_to_future(under_way)
        except (asyncio.CancelledError, CancelledError):
            if self._given_up:
                raise RequestCancelledError("the crawl ends") from None
            raise
        finally:
            self._under_way.discard(under_way)


class RemoteControlExtension(Component):
    """Looks at the crawl's `FileControl` every so often, and pauses or stops the engine.

    A paused crawl finishes what is in flight and fetches nothing more.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._control = self._crawl.control
        self._over = False
        self.paused = False

    def engine_started(self) -> None:
        """Start looking; a stop or budget that an earlier run has not seen is not for this one."""
        self._control.clear_command(Command.STOP)
        earlier = self._control.budget
        if earlier is not None:
            self._control.clear_budget(earlier)
        self._look()

    def spider_closed(self) -> None:
        """Stop looking."""
        self._over = True

    def _look(self) -> None:
        if self._over:
            return
        wanted = self._control.command
        if wanted is Command.STOP:
            self._over = True
            self._control.clear_command(wanted)
            logger.info("asked to stop: waiting for what is under way")
            close_spider(self._crawler, "stopped")
            return
        call_later(self._control.poll_interval, self._look)
        budget = self._control.budget
        if budget is not None:
            self._extend(budget)
        if (wanted is Command.PAUSE) != self.paused:
            self._turn(wanted)

    def _extend(self, budget: int) -> None:
        self._control.clear_budget(budget)
        self._crawl.set_budget(budget)
        logger.info("the budget is %s now", f"{budget:,} fetches" if budget else "without limit")
        wake(self._crawler)

    def _turn(self, wanted: Command) -> None:
        self.paused = wanted is Command.PAUSE
        self._control.clear_command(wanted)
        if self.paused:
            self._crawler.engine.pause()
            logger.info("paused, until `focuscrawl resume %s`", self._control.name)
        else:
            self._crawler.engine.unpause()
            wake(self._crawler)
            logger.info("resumed")
        self._crawl.record_event("paused" if self.paused else "resumed")


class StopReason(Component):
    """Closes the idle spider with the crawl's stop reason instead of ``finished``.

    Other components may keep an idle spider open, but not when the budget is spent.
    """

    def spider_idle(self) -> None:
        """Close the spider."""
        failure = self._crawl.store_failure
        if failure is not None:
            cause = getattr(failure, "orig", failure)  # without statement and parameters
            logger.error("the crawl store cannot be used any more: %s", cause)
        reason = self._crawl.stop_reason
        if reason not in (None, "frontier_empty", "seeds_unreachable"):
            close_spider(self._crawler, reason)
        if has_start_failed(self._crawler):
            reason = "start_error"
        raise CloseSpider(reason or "finished")
