"""Pauses, resumes and stops a crawl on users' commands; limits the time that stopping takes."""

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
    close_unless_closing,
    has_start_failed,
    is_closing,
    wake,
    wrap_downloads,
)
from focuscrawl.errors import RequestCancelledError
from focuscrawl.report.plain_text import pluralize

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.internet.defer import Deferred

    from focuscrawl.engine.private import Download


logger = logging.getLogger(__name__)

_POLL_INTERVAL = 0.5  # seconds between two checks


class BoundedStop(Component):
    """Cancels slow downloads when the spider is closing, and queues their URLs again.

    Without the extension, Scrapy waits for every request in flight and every retry, up to
    ``DOWNLOAD_TIMEOUT`` for each. The extension cancels requests in flight after
    ``FOCUSCRAWL_STOP_TIMEOUT`` seconds. Replays use the extension only if they extract the texts
    of pages.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if self._crawl.web is not None and not self._crawl.config.text:
            raise NotConfigured
        self._grace = self._crawl.config.stop_timeout
        self._downloads: set[Deferred[Response]] = set()
        self._given_up = False
        self._closed = False

    def engine_started(self) -> None:
        """Wrap the download handlers; start to check regularly whether the spider is closing."""
        if self._crawl.web is None:
            wrap_downloads(self._crawler, self._download)
        self._poll(None)

    def spider_closed(self) -> None:
        """Stop the regular checks."""
        self._closed = True

    def _poll(self, closing_since: float | None) -> None:
        if self._closed:
            return
        if closing_since is None and is_closing(self._crawler):
            closing_since = time.monotonic()
        if closing_since is not None and time.monotonic() - closing_since >= self._grace:
            self._give_up()
        else:
            call_later(_POLL_INTERVAL, self._poll, closing_since)

    def _give_up(self) -> None:
        self._given_up = True
        if self._downloads:
            logger.info(
                "Cancelled %s; the URLs are queued again",
                pluralize(len(self._downloads), "request"),
            )
        for download in list(self._downloads):
            download.cancel()
        self._context.parsing.cancel()
        self._context.rendering.cancel()
        self._context.texts.cancel()

    async def _download(self, download: Download, request: Request) -> Response:
        if self._given_up:
            raise RequestCancelledError("the crawl is stopping")
        running: Deferred[Response] = deferred_from_coro(download(request))
        self._downloads.add(running)
        try:
            return await maybe_deferred_to_future(running)
        except (asyncio.CancelledError, CancelledError):
            if self._given_up:
                raise RequestCancelledError("the crawl is stopping") from None
            raise
        finally:
            self._downloads.discard(running)


class RemoteControlExtension(Component):
    """Reads the commands in the crawl's `FileControl`, and pauses, resumes or stops the engine.

    A paused crawl finishes the requests in flight and starts no other requests.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._control = self._crawl.control
        self._closed = False
        self.paused = False

    def engine_started(self) -> None:
        """Discard the commands `stop` and `extend` for an earlier run; start to read commands."""
        self._control.clear_command(Command.STOP)
        earlier = self._control.budget
        if earlier is not None:
            self._control.clear_budget(earlier)
        self._poll()

    def spider_closed(self) -> None:
        """Stop the regular checks."""
        self._closed = True

    def _poll(self) -> None:
        if self._closed:
            return
        wanted = self._control.command
        if wanted is Command.STOP:
            self._closed = True
            self._control.clear_command(wanted)
            logger.info("Stopping: waiting for the requests in flight")
            close_spider(self._crawler, "stopped")
            return
        call_later(self._control.poll_interval, self._poll)
        budget = self._control.budget
        if budget is not None:
            self._extend(budget)
        if (wanted is Command.PAUSE) != self.paused:
            self._set_paused(wanted)

    def _extend(self, budget: int) -> None:
        self._control.clear_budget(budget)
        self._crawl.set_budget(budget)
        logger.info("The budget is now %s", f"{budget:,} fetches" if budget else "unlimited")
        wake(self._crawler)

    def _set_paused(self, wanted: Command) -> None:
        self.paused = wanted is Command.PAUSE
        self._control.clear_command(wanted)
        if self.paused:
            self._crawler.engine.pause()
            logger.info("Paused; `focuscrawl resume %s` resumes the crawl", self._control.name)
        else:
            self._crawler.engine.unpause()
            wake(self._crawler)
            logger.info("Resumed")
        self._crawl.record_event("paused" if self.paused else "resumed")


class StopReason(Component):
    """Closes the idle spider with the crawl's stop reason instead of Scrapy's ``finished``.

    Other components may keep an idle spider open, unless the budget is spent. The class also
    closes the spider if the process has to stop while the Scrapy engine is starting.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        from twisted.internet import reactor  # noqa: PLC0415 - it is installed by now

        reactor.addSystemEventTrigger(
            "before",
            "shutdown",  # type: ignore[arg-type]  # methods of interfaces have no `self`
            close_unless_closing,
            crawler,
        )

    def spider_idle(self) -> None:
        """Close the spider."""
        failure = self._crawl.store_failure
        if failure is not None:
            cause = getattr(failure, "orig", failure)  # without the SQL statement
            logger.error("The crawl database cannot be written: %s", cause)
        reason = self._crawl.stop_reason
        if reason not in (None, "frontier_empty", "seeds_unreachable"):
            close_spider(self._crawler, reason)
        if has_start_failed(self._crawler):
            reason = "start_error"
        raise CloseSpider(reason or "finished")
