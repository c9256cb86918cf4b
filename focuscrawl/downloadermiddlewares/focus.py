"""Every answer passes the critic and the strategy here."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import DeferredLock
from twisted.internet.threads import deferToThread

from focuscrawl.crawl import Download
from focuscrawl.crawl.redirects import refresh_target
from focuscrawl.crawl.visit import NOT_MODIFIED
from focuscrawl.engine.binding import crawl_of
from focuscrawl.engine.download_errors import cause
from focuscrawl.engine.meta import AGAIN, NOINDEX, OWN, URL_ID, VISIT
from focuscrawl.engine.private import slot_delay
from focuscrawl.engine.spider_requests import redirected
from focuscrawl.errors import GivenUpError
from focuscrawl.foundation.urls import resolve
from focuscrawl.page import read_content_type
from focuscrawl.signals import page_visited

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from focuscrawl.crawl import Visit
    from focuscrawl.page import PageView


_LONGEST_FIELD = 256  # characters of a validator; longer ones are no use
_LARGE = 300_000  # bytes; parsing more would hold the event loop for over 10 ms


class FocusMiddleware:
    """Hands answers to the crawl: page, judgement, scores and record come of it.

    It sits nearest to the engine, so that decompression and retries are done. The store is
    written here and not in an item pipeline because a page, its links and its new state are one
    transaction, and because other people's spiders yield items of their own.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl = crawl_of(crawler)
        # large pages take turns: parsed side by side they would take memory, and no less time
        self._one_large = DeferredLock()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware of a crawler whose crawl is open."""
        return cls(crawler)

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Judge and record the answer to a request that came out of the frontier.

        A spider's own request goes on to where its page has moved, as it would without a crawl.
        """
        number = request.meta.get(URL_ID)
        if number is not None:
            fetched = _fetched(response)
            if fetched.size > _LARGE:
                await maybe_deferred_to_future(self._one_large.acquire())
                try:
                    parsing = deferToThread(self._crawl.parse, number, fetched)
                    view = await maybe_deferred_to_future(parsing)
                    self._visit(number, request, fetched, view)
                finally:
                    self._one_large.release()
            else:
                view = self._crawl.parse(number, fetched)
                self._visit(number, request, fetched, view)
            return self._moved(request, fetched, view) or response
        return response

    def _visit(
        self, number: int, request: Request, fetched: Download, view: PageView | None
    ) -> None:
        self._take_over_delay(number, request)
        try:
            visit = self._crawl.visit(number, fetched, view, time.monotonic())
        except Exception:
            self._crawl.halt(number, time.monotonic())
            raise
        if AGAIN in request.meta:
            self._count_again(visit)
            raise IgnoreRequest("fetched again for its new links: nobody else asked for it")
        request.meta[VISIT] = visit
        if self._crawl.plan.obey_meta_robots and view is not None and view.noindex:
            request.meta[NOINDEX] = True
            self._crawler.stats.inc_value("focuscrawl/noindex")
        self._crawler.signals.send_catch_log(page_visited, crawl=self._crawl, visit=visit)

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Record that there is no answer, or that the request may not be made."""
        number = request.meta.get(URL_ID)
        if number is None:
            return
        if isinstance(exception, GivenUpError):
            self._crawl.put_back(number, time.monotonic())
            return
        if isinstance(exception, IgnoreRequest):
            self._crawl.exclude(number, str(exception), time.monotonic())
            self._crawler.stats.inc_value("focuscrawl/excluded")
            return
        visit = self._crawl.fail(number, cause(exception), time.monotonic())
        if AGAIN in request.meta:
            self._count_again(visit)
            return
        request.meta[VISIT] = visit
        self._crawler.signals.send_catch_log(page_visited, crawl=self._crawl, visit=visit)

    def _count_again(self, visit: Visit) -> None:
        stats = self._crawler.stats
        stats.inc_value("focuscrawl/hubs_again")
        if visit.status == NOT_MODIFIED:
            stats.inc_value("focuscrawl/hubs_not_modified")
        stats.inc_value("focuscrawl/hubs_new_links", visit.links)

    def _moved(self, request: Request, fetched: Download, view: PageView | None) -> Request | None:
        if request.meta.get(OWN, True):  # a link's, or the project wants to see redirects itself
            return None
        target = refresh_target(view, self._crawl.plan.meta_refresh)
        if 300 <= fetched.status < 400:
            target = fetched.location
        known = target is not None and self._crawl.urls.get(target) is not None
        return redirected(request, str(target)) if known else None

    def _take_over_delay(self, number: int, request: Request) -> None:
        """Let the frontier wait as long as AutoThrottle has made the downloader's slot wait."""
        delay = slot_delay(self._crawler, request.meta["download_slot"])
        if delay is not None:
            self._crawl.frontier.set_delay(self._crawl.urls.host(number), delay)


def _fetched(response: Response) -> Download:
    header = (response.headers.get("Content-Type") or b"").decode("latin-1")
    media_type, encoding = read_content_type(header)
    location = (response.headers.get("Location") or b"").decode("utf-8", "replace").strip()
    return Download(
        status=response.status,
        body=response.body,
        content_type=media_type,
        encoding=encoding,
        location=resolve(response.url, [location])[0] if location else None,
        size=len(response.body),
        etag=_field(response, "ETag"),
        last_modified=_field(response, "Last-Modified"),
        robots=tuple(
            value.decode("latin-1") for value in response.headers.getlist("X-Robots-Tag")
        ),
    )


def _field(response: Response, name: str) -> str | None:
    value = (response.headers.get(name) or b"").decode("latin-1").strip()
    return value if value and len(value) <= _LONGEST_FIELD else None
