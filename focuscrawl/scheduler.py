"""Scrapy's scheduler over the frontier: links are rows, a Request is made when one is due."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.core.scheduler import BaseScheduler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import call_later
from scrapy.utils.log import failure_to_exc_info

from focuscrawl.binding import crawl_of
from focuscrawl.errors import UserError
from focuscrawl.meta import URL_ID, VISIT
from focuscrawl.urls import normalize

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

    from focuscrawl.crawl import Fetch, Visit

logger = logging.getLogger(__name__)


class FrontierScheduler(BaseScheduler):
    """Gives Scrapy the best link whose host has room, and nothing else.

    Requests that a spider or a middleware yields are queued as start URLs and keep their
    callbacks; a retry takes the place its URL had. Nothing waits in the downloader's own queues,
    so a new model re-orders everything that has not been fetched.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl = crawl_of(crawler)
        self._requests: dict[int, Request] = {}
        self._wakes_at: float | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the scheduler of a crawler whose crawl is open."""
        return cls(crawler)

    def has_pending_requests(self) -> bool:
        """Tell whether the crawl goes on when everything under way is done.

        Scrapy asks when nothing is being downloaded or processed. A URL that counts as under
        way then was swallowed by somebody's middleware; waiting for it would never end.
        """
        for number in list(self._crawl.in_flight):
            logger.error("no answer and no error came for %s", self._crawl.urls[number])
            self._crawl.fail(number, "lost", time.monotonic())
        return self._crawl.unfinished

    def enqueue_request(self, request: Request) -> bool:
        """Queue a request that did not come out of the frontier, or comes back to it."""
        number = request.meta.get(URL_ID)
        if number is not None and number in self._crawl.in_flight:
            self._requests[number] = request
            self._crawl.put_back(number, time.monotonic())
            return True
        url = normalize(request.url)
        if url is None or request.method != "GET" or not self._crawl.add_seeds([url]):
            return False
        number = self._crawl.urls.get(url)
        assert number is not None
        self._requests[number] = request.replace(url=url)  # as stored: without credentials
        return True

    def next_request(self) -> Request | None:
        """Make the Request for the best link that may be fetched now."""
        now = time.monotonic()
        fetch = self._crawl.next(now)
        if fetch is None:
            self._wake_when_ready(now)
            return None
        held = self._requests.pop(fetch.id, None)
        if held is None:
            return Request(fetch.url, meta=_meta(fetch), errback=self._failed, dont_filter=True)
        return held.replace(meta=held.meta | _meta(fetch))

    def close(self, reason: str) -> None:
        """End the crawl; Scrapy's reason for a signal is called what the user did."""
        self._crawl.close("interrupted" if reason == "shutdown" else reason)

    def _failed(self, failure: Failure) -> Iterator[Visit]:
        """Record what no middleware saw fail, and give the fetch to the item pipelines."""
        request: Request = failure.request  # type: ignore[attr-defined]
        number = request.meta[URL_ID]
        if VISIT not in request.meta and not isinstance(failure.value, IgnoreRequest):
            known = isinstance(failure.value, UserError)
            trace = None if known else failure_to_exc_info(failure)
            logger.error("cannot process %s: %s", request.url, failure.value, exc_info=trace)
        if number in self._crawl.in_flight:
            error = f"{failure.type.__name__}: {failure.value}"  # type: ignore[union-attr]
            request.meta[VISIT] = self._crawl.fail(number, error, time.monotonic())
        if VISIT in request.meta:
            yield request.meta[VISIT]

    def _wake_when_ready(self, now: float) -> None:
        """Have the engine ask again when the next host is ready, not at its own heartbeat."""
        ready = self._crawl.frontier.next_ready()
        if self._crawl.pausing:
            ready = now + self._crawl.pause
        if ready is None or (self._wakes_at is not None and now < self._wakes_at <= ready):
            return
        self._wakes_at = ready
        call_later(max(0.0, ready - now), self._wake)

    def _wake(self) -> None:
        self._wakes_at = None
        slot = self._crawler.engine._slot  # Scrapy has no public way to wake its engine
        if slot is not None:
            slot.nextcall.schedule()


def _meta(fetch: Fetch) -> dict[str, Any]:
    return {
        URL_ID: fetch.id,
        "depth": fetch.depth,
        "download_slot": fetch.host,
        # every answer is recorded as it is, errors and redirects included
        "dont_redirect": True,
        "handle_httpstatus_all": True,
    }
