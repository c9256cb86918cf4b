"""Keeps judged pages of a project's own spider until the spider's callback has finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakSet

from scrapy import signals

from focuscrawl.crawl.scope import can_be_page, nofollow_urls
from focuscrawl.engine.page_parsing import expand_visit
from focuscrawl.engine.spider_requests import SitemapDates
from focuscrawl.engine.visits import count_refetch, halt_on_error
from focuscrawl.foundation.urls import normalize
from focuscrawl.signals import page_visited

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from focuscrawl.crawl import Crawl, PageVisit
    from focuscrawl.engine.page_texts import PageTexts
    from focuscrawl.engine.visits import VisitLock


@dataclass
class _OpenPage:
    visit: PageVisit
    requests: list[Request] = field(default_factory=list)
    followed: set[str] = field(default_factory=set)
    finishing: bool = False


class OpenPages:
    """Judged pages that are not recorded yet, because the spider's callback has not finished.

    When the callback of a page has finished, the callback's requests are queued together with the
    links of the page. No link is fetched before the crawl knows the spider's own request for the
    link. A page is fetched again by the resumed crawl if a crash interrupted the page's callback.
    """

    def __init__(
        self, crawler: Crawler, crawl: Crawl, visit_lock: VisitLock, texts: PageTexts
    ) -> None:
        self._crawler = crawler
        self._crawl = crawl
        self._visit_lock = visit_lock
        self._pages: dict[int, _OpenPage] = {}
        self._already_queued: WeakSet[Request] = WeakSet()
        self._queue_request: Callable[[Request], bool] = bool
        self._texts = texts
        self._dates = SitemapDates(crawler.spider)

    def __contains__(self, url_id: int) -> bool:
        return url_id in self._pages

    def set_request_handler(self, queue_request: Callable[[Request], bool]) -> None:
        """Set the function that queues a request of a callback, or drops it and returns False."""
        self._queue_request = queue_request

    def open(self, visit: PageVisit) -> None:
        """Keep a judged page until its callback has finished."""
        self._pages[visit.url_id] = _OpenPage(visit)

    def links_of(self, url_id: int) -> list[str]:
        """Return the links of a page that the crawl may follow even if the callback does not."""
        page = self._pages.get(url_id)
        scope = self._crawl.scope
        if page is None or page.visit.view is None or not scope.follows_links_at(page.visit.depth):
            return []
        config = self._crawl.config
        urls = dict.fromkeys(page.visit.view.links.urls)
        return [
            url
            for url in urls
            if (config.any_media or can_be_page(url, pdf=config.pdf)) and scope.admits(url)
        ]

    def mark_followed(self, url_id: int, url: str) -> None:
        """Record that the crawl follows a link of a kept page without a callback's request."""
        self._pages[url_id].followed.add(url)

    def add_request(self, url_id: int, request: Request) -> None:
        """Keep a request that the callback of a kept page yielded."""
        self._pages[url_id].requests.append(request)
        self._already_queued.add(request)

    def queue_redirect(self, request: Request) -> Request:
        """Queue a request for the target of a redirect, and return the request for the engine."""
        self._queue_request(request)
        self._already_queued.add(request)
        return request

    def was_queued(self, request: Request) -> bool:
        """Tell whether a request from the engine was already queued with the page that led to it.

        The engine may pass a request to the scheduler long after the callback that yielded the
        request has finished, or never.
        """
        was_queued = request in self._already_queued
        self._already_queued.discard(request)
        return was_queued

    async def finish(self, url_id: int) -> None:
        """Record a kept page with its links and requests, and extract the text of the page."""
        page = self._pages.get(url_id)
        if page is None or page.finishing:
            return
        page.finishing = True
        try:
            if url_id in self._crawl.in_flight:
                await self._finish(page.visit, page.requests, page.followed)
        finally:
            del self._pages[url_id]
        if self._texts.needs_text(page.visit):
            await self._texts.extract(page.visit)

    async def _finish(
        self, visit: PageVisit, requests: Sequence[Request], followed: set[str]
    ) -> None:
        refused: frozenset[str] = frozenset()
        if visit.view is not None and self._crawl.config.obey_meta_robots:
            refused = nofollow_urls(visit.view)
        allowed = [each for each in requests if normalize(each.url) not in refused]
        if len(allowed) < len(requests):
            self._crawler.stats.inc_value("focuscrawl/nofollow", len(requests) - len(allowed))
        urls = {normalize(request.url) for request in allowed}
        visit.requested = frozenset(url for url in urls | followed if url is not None)
        await self.record(visit, self._dates.newest_first(allowed))

    async def record(self, visit: PageVisit, requests: Sequence[Request] = ()) -> None:
        """Queue links and requests of a judged page, record the page, and call `report`."""
        async with self._visit_lock.hold(visit):
            with halt_on_error(self._crawl, visit.url_id):
                await expand_visit(self._crawl, visit)
                self._crawl.record(visit, time.monotonic())
            for request in requests:
                if not self._queue_request(request):
                    send = self._crawler.signals.send_catch_log
                    send(signals.request_dropped, request=request, spider=self._crawler.spider)
        self.report(visit)

    def report(self, visit: PageVisit) -> None:
        """Count a recorded visit, and send `page_visited`."""
        if visit.is_refetch:
            count_refetch(self._crawler.stats, visit)
            return
        if visit.noindex:
            self._crawler.stats.inc_value("focuscrawl/noindex")
        self._crawler.signals.send_catch_log(page_visited, crawl=self._crawl, visit=visit)
