"""Every answer passes the critic and the strategy here, in other people's projects."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest, NotConfigured

from focuscrawl.engine.binding import crawl_of
from focuscrawl.engine.expansion import expand
from focuscrawl.engine.instance_feed import InstanceFeed
from focuscrawl.engine.meta import NOINDEX, OWN, URL_ID, VISIT
from focuscrawl.engine.page_parsing import parsing_of
from focuscrawl.engine.spider_requests import redirected
from focuscrawl.engine.visits import (
    count_again,
    halting,
    turns_of,
    visit_of_error,
    visit_of_response,
)
from focuscrawl.errors import GivenUpError
from focuscrawl.signals import page_visited

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from focuscrawl.crawl import PageVisit


class FocusMiddleware:
    """Judges, expands and records each answer before the project's own spider has it.

    The spider ``focused`` yields its fetches as items and has pipelines for the three steps, and
    no use for this. Other people's spiders yield items of their own, or none. The middleware
    sits nearest to the engine, so that decompression and retries are done.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl = crawl_of(crawler)
        self._parsing = parsing_of(crawler)
        self._turns = turns_of(crawler)
        self._instances = InstanceFeed.of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware, or raise NotConfigured."""
        if getattr(crawler.spider, "yields_visits", False):
            raise NotConfigured
        return cls(crawler)

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Judge and record the answer to a request that came out of the frontier.

        A spider's own request goes on to where its page has moved, as it would without a crawl.
        """
        number = request.meta.get(URL_ID)
        if number is None:
            return response
        response = response.replace(request=request)
        visit = visit_of_response(self._crawl, response)
        await self._parsing.parse(visit)
        await self._turns.begin(visit)
        try:
            with halting(self._crawl, number):
                self._crawl.judge(visit)
                await expand(self._crawl, visit)
                self._crawl.record(visit, time.monotonic())
        finally:
            self._turns.end(visit)
        if visit.again:
            count_again(self._crawler.stats, visit)
            raise IgnoreRequest("fetched again for its new links: nobody else asked for it")
        self._tell(request, visit)
        return self._moved(request, visit) or response

    async def process_exception(self, request: Request, exception: Exception) -> None:
        """Record that there is no answer, or that the request may not be made."""
        number = request.meta.get(URL_ID)
        if number is None:
            return
        if isinstance(exception, GivenUpError):
            self._crawl.put_back(number, time.monotonic())
            return
        visit = visit_of_error(self._crawl, request, exception, answered=False)
        await self._turns.begin(visit)
        try:
            self._crawl.record(visit, time.monotonic())
        finally:
            self._turns.end(visit)
        if visit.excluded is not None:
            self._crawler.stats.inc_value("focuscrawl/excluded")
        elif visit.again:
            count_again(self._crawler.stats, visit)
        else:
            self._tell(request, visit)

    def _tell(self, request: Request, visit: PageVisit) -> None:
        if self._instances is not None:
            self._instances.add(visit)
        request.meta[VISIT] = visit
        if visit.noindex:
            request.meta[NOINDEX] = True
            self._crawler.stats.inc_value("focuscrawl/noindex")
        self._crawler.signals.send_catch_log(page_visited, crawl=self._crawl, visit=visit)

    def _moved(self, request: Request, visit: PageVisit) -> Request | None:
        if request.meta.get(OWN, True):  # a link's, or the project wants to see redirects itself
            return None
        location = visit.location if visit.redirects else None
        known = location is not None and self._crawl.urls.get(location) is not None
        return redirected(request, str(location)) if known else None
