"""Asks for pages that have been fetched before only if they have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from focuscrawl.engine.binding import crawl_of
from focuscrawl.engine.meta import OWN, URL_ID

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler

    from focuscrawl.crawl import Crawl


class ConditionalMiddleware:
    """Adds If-None-Match and If-Modified-Since to requests for known pages (RFC 9110, 13.1).

    On with ``FOCUSCRAWL_REVISIT``, for pages that earlier crawls have met, and with
    ``FOCUSCRAWL_REVISIT_HUBS``, for those that this one has. A server that has the page as it
    was answers 304 without it; the crawl knows what it was. A project's own spider does not: it
    is sent the page.
    """

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware, or raise NotConfigured."""
        crawl = crawl_of(crawler)
        if not (crawl.plan.revisit or crawl.plan.revisit_hubs):
            raise NotConfigured
        return cls(crawl)

    def process_request(self, request: Request) -> None:
        """Add the header fields, where something is known."""
        if URL_ID in request.meta and OWN not in request.meta:
            for name, value in self._crawl.conditions(request.meta[URL_ID]).items():
                request.headers.setdefault(name, value)
