"""Middlewares that judge pages for other projects' spiders, and set the priority of requests."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest, NotConfigured

from focuscrawl.engine.component import Component
from focuscrawl.engine.instance_feed import InstanceFeed
from focuscrawl.engine.spider_requests import redirected_request
from focuscrawl.engine.visits import (
    ALL_REDIRECTS,
    ANSWERS,
    NOINDEX,
    OWN_REQUEST,
    UNANSWERED,
    URL_ID,
    VISIT,
    halt_on_error,
    visit_of_error,
    visit_of_response,
)
from focuscrawl.errors import RequestCancelledError

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from focuscrawl.crawl import PageVisit


SCALE = 1000  # priority of a link whose score is 1
FIRST = 1_000_000  # priority of start pages, redirect targets and other URLs before all links


class PriorityMiddleware(Component):
    """Asks the strategy for the score of a URL, and sets `Request.priority` from the score.

    The strategy returns its present score of the URL (`Strategy.score_at_request`). The score of
    the strategy ``apprentice`` is the expected relevance of the page. The priority is the rounded
    product of `SCALE` and the score. URLs that are fetched before all links, such as start pages
    and redirect targets, have the priority `FIRST`. Other middlewares, retries and logs read the
    priority. The frontier does not use the priority of requests. Requests that the project's
    spider has yielded keep their own priority.
    """

    def process_request(self, request: Request) -> None:
        """Set the priority of a request that comes from the frontier."""
        if OWN_REQUEST in request.meta:
            return
        url_id = request.meta.get(URL_ID)
        if url_id in self._crawl.in_flight:
            score = self._crawl.score_at_request(url_id)
            request.priority = FIRST if score == math.inf else round(SCALE * score)

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Mark a request that got no response and will not be retried."""
        request.meta[UNANSWERED] = True


class FocusMiddleware(Component):
    """Judges each response before the project's own spider gets the response.

    The spider ``focused`` yields its fetches as items for the pipelines and does not need this
    middleware. For spiders of other projects, `OpenPages` scores the links of a page, and records
    the page when the spider's callback has finished. The middleware is the one nearest to the
    engine, so it gets responses after decompression and retries.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if getattr(crawler.spider, "yields_visits", False):
            raise NotConfigured
        self._parsing = self._context.parsing
        self._visit_lock = self._context.visit_lock
        self._pages = self._context.open_pages
        self._yields_links = self._crawl.config.follow
        self._redirects = crawler.settings.getbool("REDIRECT_ENABLED")
        InstanceFeed.connect(crawler, self._crawl)

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Judge the response to a request from the frontier.

        Redirects of the spider's own requests are followed as by Scrapy without focuscrawl.
        """
        url_id = request.meta.get(URL_ID)
        if url_id is None:
            return response
        response = response.replace(request=request)
        visit = visit_of_response(self._crawl, response)
        own = OWN_REQUEST in request.meta  # the spider has yielded the request
        wanted = own and self._is_wanted(request, response.status)
        visit.follows_redirect = self._yields_links or not wanted
        await self._parsing.parse(visit)
        with halt_on_error(self._crawl, url_id):
            self._crawl.judge(visit)
        if visit.is_refetch:
            visit.requested = None if self._yields_links else frozenset()
            await self._pages.record(visit)
            raise IgnoreRequest(
                "hub revisit: its links are queued, the spider does not get the page"
            )
        request.meta[VISIT] = visit
        if visit.noindex:
            request.meta[NOINDEX] = True
        if visit.is_redirect:
            await self._pages.record(visit)
            return (
                self._redirect_request(request, visit) if own and not wanted else None
            ) or response
        self._pages.open(visit)
        return response

    async def process_exception(self, request: Request, exception: Exception) -> None:
        """Record that a request failed or is not allowed."""
        url_id = request.meta.get(URL_ID)
        if url_id is None:
            return
        if isinstance(exception, RequestCancelledError):
            self._crawl.requeue(url_id, time.monotonic())
            return
        visit = visit_of_error(self._crawl, request, exception, answered=False)
        async with self._visit_lock.hold(visit):
            self._crawl.record(visit, time.monotonic())
        if visit.excluded is not None:
            self._crawler.stats.inc_value("focuscrawl/excluded")
            return
        if not visit.is_refetch:
            request.meta[VISIT] = visit
        self._pages.report(visit)

    def _is_wanted(self, request: Request, status: int) -> bool:
        """Return whether the spider handles the redirect itself, by Scrapy's settings and meta."""
        if request.meta[OWN_REQUEST] == ALL_REDIRECTS:
            return True
        lists = (
            getattr(self._crawler.spider, "handle_httpstatus_list", ()),
            request.meta.get("handle_httpstatus_list", ()),
        )
        handled = request.meta[OWN_REQUEST] == ANSWERS or any(status in each for each in lists)
        # a page with a meta refresh has the status 200, so it is not handled
        return 300 <= status < 400 and (handled or not self._redirects)

    def _redirect_request(self, request: Request, visit: PageVisit) -> Request | None:
        location = visit.location
        known = location is not None and self._crawl.urls.get(location) is not None
        return (
            self._pages.queue_redirect(redirected_request(request, str(location)))
            if known
            else None
        )
