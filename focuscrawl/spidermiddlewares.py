"""Scrapy spider middlewares that collect requests and links of spiders in other projects.

The module `focuscrawl.engine.open_pages` keeps each page until the spider's callback has finished.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.utils.defer import deferred_from_coro

from focuscrawl.engine.component import Component
from focuscrawl.engine.visits import FOLLOWED, URL_ID
from focuscrawl.foundation.user_input import UrlPatterns

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class AskedMiddleware(Component):
    """Collect the requests that a spider's callback yields, and then record the page.

    The middleware must be the nearest to the engine, so that the project's own spider middlewares
    have already dropped requests that are, for example, too deep or off site.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if getattr(crawler.spider, "yields_visits", False):
            raise NotConfigured
        self._pages = self._context.open_pages

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Yield the callback's output; record the page when the callback ends or fails."""
        url_id = _url_id(response)
        try:
            async for each in result:
                if isinstance(each, Request) and url_id in self._pages:
                    if each.meta.get(FOLLOWED):
                        self._pages.mark_followed(url_id, each.url)
                        continue
                    self._pages.add_request(url_id, each)
                yield each
        finally:
            await self._pages.finish(url_id)

    def process_spider_exception(self, response: Response, exception: Exception) -> None:
        """Record the page if the spider's callback fails before the callback yields anything."""
        deferred_from_coro(self._pages.finish(_url_id(response)))


def _url_id(response: Response) -> int:
    assert response.request is not None
    return int(response.request.meta.get(URL_ID, -1))


class FollowedMiddleware(Component):
    """Add requests for all links of a page to the output of the spider's callback.

    The middleware must be the nearest to the spider, so that the project's own spider middlewares
    also filter the added links, for example by depth and site.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if not self._crawl.config.follow or getattr(crawler.spider, "yields_visits", False):
            raise NotConfigured
        self._pages = self._context.open_pages
        self._allow = UrlPatterns(self._crawl.config.allow)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Yield the output of the spider's callback, then a request for each link."""
        async for each in result:
            yield each
        for url in self._pages.links_of(_url_id(response)):
            if not self._allow or self._allow.match(url):
                yield Request(url, meta={FOLLOWED: True})
