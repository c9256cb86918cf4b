"""Asks for pages that have been fetched before only if they have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from focuscrawl.engine.component import Component
from focuscrawl.engine.meta import OWN, URL_ID

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler


class ConditionalMiddleware(Component):
    """Adds If-None-Match and If-Modified-Since to requests for known pages (RFC 9110, 13.1).

    On with ``FOCUSCRAWL_REVISIT``, for pages that earlier crawls have met, and with
    ``FOCUSCRAWL_REVISIT_HUBS``, for those that this one has. A server that has the page as it
    was answers 304 without it; the crawl knows what it was. A project's own spider does not: it
    is sent the page.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if not (self._crawl.plan.revisit or self._crawl.plan.revisit_hubs):
            raise NotConfigured

    def process_request(self, request: Request) -> None:
        """Add the header fields, where something is known."""
        if URL_ID in request.meta and OWN not in request.meta:
            for name, value in self._crawl.conditions(request.meta[URL_ID]).items():
                request.headers.setdefault(name, value)
