"""Scrapy scheduler that creates a request for the best queued link of the frontier."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.core.scheduler import BaseScheduler, Scheduler
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro

from focuscrawl.engine.component import context_of, has_crawl
from focuscrawl.engine.private import is_idle, wake
from focuscrawl.engine.spider_requests import LinkRequestSettings, SpiderRequests
from focuscrawl.engine.visits import (
    REFETCH,
    UNANSWERED,
    URL_ID,
    VISIT,
    is_web_error,
    visit_of_error,
)
from focuscrawl.errors import RequestCancelledError, UserError
from focuscrawl.signals import page_visited

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

    from focuscrawl.crawl import Fetch, PageVisit

logger = logging.getLogger(__name__)

# stop reasons after which requests that bypass the frontier are still sent
_NO_LINKS = ("frontier_empty", "hosts_unavailable", "seeds_unreachable")


class FrontierScheduler(BaseScheduler):
    """Give Scrapy the best queued link whose host is ready for a request.

    The class `SpiderRequests` keeps the callbacks of requests that spiders and middlewares create.
    A URL keeps its score when its request is retried. Requests do not wait in Scrapy's downloader,
    so a new model can re-score every link that has not been fetched.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        context = context_of(crawler)
        self._crawl, self._pages, self._visit_lock = (
            context.crawl,
            context.open_pages,
            context.visit_lock,
        )
        assert crawler.spider is not None
        self._link_settings = LinkRequestSettings.of(crawler.spider, self._crawl.config)
        self._spider_requests = SpiderRequests(
            self._crawl, crawler.spider, self._link_settings, self._on_failure
        )
        self._pages.set_request_handler(self._spider_requests.add)
        self._wakes_at: float | None = None
        self._postponed: list[Request] = []  # until the frontier is reloaded
        self._slots = crawler.settings.getdict("DOWNLOAD_SLOTS")  # limits by host name
        self._limited = 0  # number of hosts whose limits are set

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BaseScheduler:  # type: ignore[override]
        """Create a `FrontierScheduler`, or Scrapy's default scheduler for ``scrapy shell``."""
        return cls(crawler) if has_crawl(crawler) else Scheduler.from_crawler(crawler)

    def has_pending_requests(self) -> bool:
        """Return whether requests remain; requests in progress do not count."""
        if self._crawl.in_flight or self._postponed:
            return True
        if self._crawl.stop_reason is None:
            return self._spider_requests.has_bypassing or self._crawl.is_unfinished
        return self._spider_requests.has_bypassing and self._crawl.stop_reason in _NO_LINKS

    def enqueue_request(self, request: Request) -> bool:
        """Queue a request that a spider or a middleware has created, or a retried request."""
        if self._pages.was_queued(request):  # with the page whose callback yielded the request
            return True
        url_id = request.meta.get(URL_ID)
        # a callback may copy the meta of its response: such a request is no retry
        if url_id in self._crawl.in_flight and url_id not in self._pages:
            self._spider_requests.requeue(url_id, request)
            self._crawl.requeue(url_id, time.monotonic(), tried=True)
            return True
        if self._crawl.reloading:  # another thread uses the frontier
            self._postponed.append(request)
            return True
        return self._spider_requests.add(request)

    def next_request(self) -> Request | None:
        """Create the request for the best queued link that may be fetched now."""
        now = time.monotonic()
        while self._postponed and not self._crawl.reloading:
            self._spider_requests.add(self._postponed.pop(0))
        bypasses = self._spider_requests.has_bypassing and not self._crawl.reloading
        if bypasses and self._crawl.stop_reason in (None, *_NO_LINKS):
            if self._crawl.is_budget_exhausted:
                return None
            self._crawler.stats.inc_value("focuscrawl/aside")
            return self._spider_requests.pop_bypassing()
        self._record_lost()
        if self._crawl.web is not None and self._crawl.is_at_capacity:
            return None  # a replay answers at once, and recording the answer wakes the engine
        if self._slots and not self._crawl.reloading:
            self._set_host_limits()
        fetch = self._crawl.next(now)
        if fetch is None:
            self._wake_when_ready(now)
            return None
        return self._spider_requests.pop(fetch, _meta(fetch)) or self._link_request(fetch)

    def _set_host_limits(self) -> None:
        """Set the limits of hosts that the crawl has found since the last call."""
        config, frontier = self._crawl.config, self._crawl.frontier
        for name in self._crawl.urls.host_names(self._limited):
            slot = self._slots.get(urlsplit(f"//{name}").hostname)  # as in Scrapy: without port
            if slot is not None:
                frontier.set_limit(self._limited, int(slot.get("concurrency", config.per_host)))
                frontier.set_delay(self._limited, float(slot.get("delay", config.delay)))
            self._limited += 1

    def _record_lost(self) -> None:
        """Record fetches that will never get a response, as ``lost``.

        If Scrapy has no request in progress, a middleware or callback of the project has
        discarded the remaining fetches.
        """
        if self._crawl.in_flight and is_idle(self._crawler):
            for url_id in list(self._crawl.in_flight):
                if url_id in self._pages:  # the page was judged, but its callback never called
                    deferred_from_coro(self._pages.finish(url_id))
                    continue
                logger.error(
                    "no response and no error for %s: a pipeline, a middleware or a callback has "
                    "discarded the request or response; check the project's own components",
                    self._crawl.urls[url_id],
                )
                self._crawl.record_failed(url_id, "lost", time.monotonic())

    def close(self, reason: str) -> None:
        """Close the crawl, and record the stop reason; record ``shutdown`` as ``interrupted``."""
        self._spider_requests.close()
        self._crawl.close("interrupted" if reason == "shutdown" else reason)

    def _link_request(self, fetch: Fetch) -> Request:
        meta = self._link_settings.meta | _meta(fetch)
        if self._link_settings.visits:
            meta["handle_httpstatus_all"] = True
        callback, errback = self._link_settings.callback, self._on_link_failure
        return Request(fetch.url, callback, meta=meta, errback=errback, dont_filter=True)

    def _on_link_failure(self, failure: Failure) -> Iterator[PageVisit]:
        """Handle the failure of a link's request; for a spider of visits, yield an item."""
        request: Request = failure.request  # type: ignore[attr-defined]
        if not self._link_settings.visits:
            self._on_failure(failure)
        elif request.meta[URL_ID] in self._crawl.in_flight:
            assert isinstance(failure.value, Exception)
            self._log(failure)
            if isinstance(failure.value, RequestCancelledError):
                self._crawl.requeue(request.meta[URL_ID], time.monotonic())
            else:
                answered = UNANSWERED not in request.meta
                yield visit_of_error(self._crawl, request, failure.value, answered=answered)

    def _on_failure(self, failure: Failure) -> None:
        """Record a failure that no middleware has recorded."""
        request: Request = failure.request  # type: ignore[attr-defined]
        self._log(failure)
        if request.meta[URL_ID] not in self._crawl.in_flight:
            return
        if request.meta[URL_ID] in self._pages:
            deferred_from_coro(self._pages.finish(request.meta[URL_ID]))
        elif _is_cancelled(failure):
            if self._link_settings.visits:  # otherwise `FocusMiddleware` has requeued the URL
                self._crawl.requeue(request.meta[URL_ID], time.monotonic())
        else:
            assert isinstance(failure.value, Exception)
            visit = visit_of_error(self._crawl, request, failure.value, answered=True)
            if self._visit_lock.is_locked:
                deferred_from_coro(self._record_in_turn(visit, request))
            else:
                self._record(visit, request)

    async def _record_in_turn(self, visit: PageVisit, request: Request) -> None:
        async with self._visit_lock.hold(visit):
            self._record(visit, request)

    def _record(self, visit: PageVisit, request: Request) -> None:
        self._crawl.record(visit, time.monotonic())
        if not visit.is_refetch:
            request.meta[VISIT] = visit
            send = self._crawler.signals.send_catch_log
            send(page_visited, crawl=self._crawl, visit=visit)

    def _log(self, failure: Failure) -> None:
        # common network and HTTP errors are counted, not logged
        request: Request = failure.request  # type: ignore[attr-defined]
        error = failure.value
        if error is None or is_web_error(error) or VISIT in request.meta or _is_cancelled(failure):
            return
        exc_info = None
        if not isinstance(error, UserError):
            trace = failure.getTracebackObject()  # type: ignore[no-untyped-call]
            exc_info = (type(error), error, trace)
        logger.error("Cannot process %s: %s", request.url, error, exc_info=exc_info)

    def _wake_when_ready(self, now: float) -> None:
        # without waiting for the heartbeat of Scrapy's engine
        ready = self._crawl.frontier.next_ready()
        if self._crawl.is_waiting:
            ready = now + self._crawl.wait_time
        if ready is None or (self._wakes_at is not None and now < self._wakes_at <= ready):
            return
        self._wakes_at = ready
        call_later(max(0.0, ready - now), self._wake)

    def _wake(self) -> None:
        self._wakes_at = None
        wake(self._crawler)


def _meta(fetch: Fetch) -> dict[str, Any]:
    again = {REFETCH: True} if fetch.is_refetch else {}
    return again | {
        URL_ID: fetch.id,
        "depth": fetch.depth,
        "dont_redirect": True,  # every response is recorded as a fetch of its own
    }


def _is_cancelled(failure: Failure) -> bool:
    return isinstance(failure.value, RequestCancelledError)
