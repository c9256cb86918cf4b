"""Pages of other projects' spiders between their answer and the end of their callback."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakSet

from scrapy import signals

from focuscrawl.crawl.scope import can_be_page, nofollow_urls
from focuscrawl.engine.instance_feed import InstanceFeed
from focuscrawl.engine.page_parsing import expand_visit
from focuscrawl.engine.spider_requests import SitemapDates
from focuscrawl.engine.visits import count_refetch, halt_on_error
from focuscrawl.foundation.urls import normalize
from focuscrawl.signals import page_visited

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    """Judged pages whose callback is still at work: neither expanded nor recorded.

    The requests of a callback are queued with its page, in one step, when it is done. So no link
    is fetched before the crawl knows the spider's request for it; and a page whose callback was
    cut short by a crash is fetched again when the crawl is resumed.
    """

    def __init__(
        self, crawler: Crawler, crawl: Crawl, visit_lock: VisitLock, texts: PageTexts
    ) -> None:
        self._crawler = crawler
        self._crawl = crawl
        self._visit_lock = visit_lock
        self._pages: dict[int, _OpenPage] = {}
        self._on_their_way: WeakSet[Request] = WeakSet()
        self._take: Callable[[Request], bool] = bool
        self._texts = texts
        self._dates = SitemapDates(crawler.spider)

    @cached_property
    def _instances(self) -> InstanceFeed | None:
        return InstanceFeed.of(self._crawler, self._crawl)

    def __contains__(self, url_id: int) -> bool:
        return url_id in self._pages

    def set_request_handler(self, take: Callable[[Request], bool]) -> None:
        """Set what queues the requests of callbacks; it returns False for those to be dropped."""
        self._take = take

    def open(self, visit: PageVisit) -> None:
        """Keep a judged visit until its callback is done."""
        self._pages[visit.url_id] = _OpenPage(visit)

    def links_of(self, url_id: int) -> list[str]:
        """Return the URLs of an open page's links that the crawl may follow by itself."""
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
        """Record that a link of an open page is followed without a request of its callback."""
        self._pages[url_id].followed.add(url)

    def add_request(self, url_id: int, request: Request) -> None:
        """Keep a request that the callback of an open page has yielded."""
        self._pages[url_id].requests.append(request)
        self._on_their_way.add(request)

    def queue_redirect(self, request: Request) -> Request:
        """Queue a request for where a page has moved, and return it for the engine."""
        self._take(request)
        self._on_their_way.add(request)
        return request

    def was_queued(self, request: Request) -> bool:
        """Tell whether a request from the engine was queued with its page.

        It may come long after the callback is done, or never.
        """
        kept = request in self._on_their_way
        self._on_their_way.discard(request)
        return kept

    async def finish(self, url_id: int) -> None:
        """Expand and record an open page, queue what its callback asked for, keep its text."""
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
        wanted = [each for each in requests if normalize(each.url) not in refused]
        if len(wanted) < len(requests):
            self._crawler.stats.inc_value("focuscrawl/nofollow", len(requests) - len(wanted))
        urls = {normalize(request.url) for request in wanted}
        visit.requested = frozenset(url for url in urls | followed if url is not None)
        await self.record(visit, self._dates.newest_first(wanted))

    async def record(self, visit: PageVisit, requests: Sequence[Request] = ()) -> None:
        """Expand and record a judged visit, queue the requests for its links, and report it."""
        async with self._visit_lock.hold(visit):
            with halt_on_error(self._crawl, visit.url_id):
                await expand_visit(self._crawl, visit)
                self._crawl.record(visit, time.monotonic())
            for request in requests:
                if not self._take(request):
                    send = self._crawler.signals.send_catch_log
                    send(signals.request_dropped, request=request, spider=self._crawler.spider)
        self.report(visit)

    def report(self, visit: PageVisit) -> None:
        """Count a recorded visit, emit its instances and send `page_visited`."""
        if visit.is_refetch:
            count_refetch(self._crawler.stats, visit)
            return
        if self._instances is not None:
            self._instances.add(visit)
        if visit.noindex:
            self._crawler.stats.inc_value("focuscrawl/noindex")
        self._crawler.signals.send_catch_log(page_visited, crawl=self._crawl, visit=visit)
