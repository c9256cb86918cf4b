"""Scrapy's scheduler over the frontier: a Request is created when its link is due."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.core.scheduler import BaseScheduler, Scheduler
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro

from focuscrawl.engine.component import context_of, has_crawl
from focuscrawl.engine.private import is_idle, wake
from focuscrawl.engine.spider_requests import LinkRequestSettings, SpiderRequests
from focuscrawl.engine.visits import AGAIN, UNANSWERED, URL_ID, VISIT, is_web_error, visit_of_error
from focuscrawl.errors import RequestCancelledError, UserError
from focuscrawl.signals import page_visited

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

    from focuscrawl.crawl import Fetch, PageVisit

logger = logging.getLogger(__name__)

# requests that bypass the frontier are still made
_NO_LINKS = ("frontier_empty", "hosts_unavailable", "seeds_unreachable")


class FrontierScheduler(BaseScheduler):
    """Gives Scrapy the best link whose host has room.

    Requests that a spider or a middleware yields keep their callbacks, see `SpiderRequests`; a
    retry keeps the place of its URL. Nothing waits in the downloader's own queues, so a new model
    re-orders everything that was not fetched.
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
        self._following = LinkRequestSettings.of(crawler.spider, self._crawl.config)
        self._own = SpiderRequests(self._crawl, crawler.spider, self._following, self._on_failure)
        self._pages.set_request_handler(self._own.add)
        self._wakes_at: float | None = None
        self._late: list[Request] = []  # requests that wait for the frontier

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BaseScheduler:  # type: ignore[override]
        """Create the scheduler of a crawler; Scrapy's own if it has no crawl.

        As in ``scrapy shell`` and ``fetch``.
        """
        return cls(crawler) if has_crawl(crawler) else Scheduler.from_crawler(crawler)

    def has_pending_requests(self) -> bool:
        """Tell whether the crawl is not over when everything in flight is done."""
        if self._crawl.in_flight or self._late:
            return True
        if self._crawl.stop_reason is None:
            return self._own.has_bypassing or self._crawl.is_unfinished
        return self._own.has_bypassing and self._crawl.stop_reason in _NO_LINKS

    def enqueue_request(self, request: Request) -> bool:
        """Queue a request that is not from the frontier, or comes back to it."""
        if self._pages.was_queued(request):  # queued with the page that it was made for
            return True
        url_id = request.meta.get(URL_ID)
        # once its page is here, a callback has handed its meta on: that is no retry
        if url_id in self._crawl.in_flight and url_id not in self._pages:
            self._own.requeue(url_id, request)
            self._crawl.requeue(url_id, time.monotonic(), tried=True)
            return True
        if self._crawl.reloading:  # another thread has the frontier
            self._late.append(request)
            return True
        return self._own.add(request)

    def next_request(self) -> Request | None:
        """Create the Request for the best link that may be fetched now."""
        now = time.monotonic()
        while self._late and not self._crawl.reloading:
            self._own.add(self._late.pop(0))
        aside = self._own.has_bypassing and not self._crawl.reloading
        if aside and self._crawl.stop_reason in (None, *_NO_LINKS):
            if self._crawl.is_budget_exhausted:
                return None
            self._crawler.stats.inc_value("focuscrawl/aside")
            return self._own.pop_bypassing()
        self._settle_lost()
        if self._crawl.web is not None and self._crawl.is_at_capacity:
            return None  # the answer is there: asked again as soon as it is recorded
        fetch = self._crawl.next(now)
        if fetch is None:
            self._wake_when_ready(now)
            return None
        return self._own.pop(fetch, _meta(fetch)) or self._follow(fetch)

    def _settle_lost(self) -> None:
        """Record the fetches that will never have an answer.

        When Scrapy has no request in flight, a URL that counts as in flight was swallowed by a
        middleware or callback of the project.
        """
        if self._crawl.in_flight and is_idle(self._crawler):
            for url_id in list(self._crawl.in_flight):
                if url_id in self._pages:  # judged, and its callback was never called
                    deferred_from_coro(self._pages.finish(url_id))
                    continue
                logger.error(
                    "no answer and no error came for %s: an item pipeline, a middleware or a "
                    "callback took it and passed nothing on",
                    self._crawl.urls[url_id],
                )
                self._crawl.record_failed(url_id, "lost", time.monotonic())

    def close(self, reason: str) -> None:
        """Close the crawl; Scrapy's reason for a signal becomes ``interrupted``."""
        self._own.close()
        self._crawl.close("interrupted" if reason == "shutdown" else reason)

    def _follow(self, fetch: Fetch) -> Request:
        meta = self._following.meta | _meta(fetch)
        if self._following.visits:
            meta["handle_httpstatus_all"] = True
        callback, errback = self._following.callback, self._failed
        return Request(fetch.url, callback, meta=meta, errback=errback, dont_filter=True)

    def _failed(self, failure: Failure) -> Iterator[PageVisit]:
        """Handle the failure of a request from the frontier: an item of a spider of visits."""
        request: Request = failure.request  # type: ignore[attr-defined]
        if not self._following.visits:
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
        """Record a failure that no middleware has recorded, such as one of the project's own."""
        request: Request = failure.request  # type: ignore[attr-defined]
        self._log(failure)
        if request.meta[URL_ID] not in self._crawl.in_flight:
            return
        if request.meta[URL_ID] in self._pages:
            deferred_from_coro(self._pages.finish(request.meta[URL_ID]))
        elif _given_up(failure):
            if self._following.visits:  # else `FocusMiddleware` has put it back
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
        # but for the everyday failures of the web
        request: Request = failure.request  # type: ignore[attr-defined]
        error = failure.value
        if error is None or is_web_error(error) or VISIT in request.meta or _given_up(failure):
            return
        exc_info = None
        if not isinstance(error, UserError):
            trace = failure.getTracebackObject()  # type: ignore[no-untyped-call]
            exc_info = (type(error), error, trace)
        logger.error("cannot process %s: %s", request.url, error, exc_info=exc_info)

    def _wake_when_ready(self, now: float) -> None:
        # not at the heartbeat of the engine
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
    again = {AGAIN: True} if fetch.is_refetch else {}
    return again | {
        URL_ID: fetch.id,
        "depth": fetch.depth,
        "download_slot": fetch.host,
        "dont_redirect": True,  # every answer is recorded as it is
    }


def _given_up(failure: Failure) -> bool:
    return isinstance(failure.value, RequestCancelledError)
