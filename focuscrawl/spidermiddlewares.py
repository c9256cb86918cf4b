"""Scrapy spider middlewares: what callbacks of other people's spiders yield.

What becomes of it is in `focuscrawl.engine.open_pages`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.utils.defer import deferred_from_coro

from focuscrawl.engine.component import Component
from focuscrawl.engine.visits import FOLLOWED, URL_ID
from focuscrawl.foundation.user_input import UrlPatterns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response


class AskedMiddleware(Component):
    """Keeps the requests of a callback with their page, which is recorded when that is done.

    It sits nearest to the engine: what the project's own spider middlewares drop (too deep, too
    long, off site) is not among them.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if getattr(crawler.spider, "yields_visits", False):
            raise NotConfigured
        self._pages = self._context.open_pages

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Pass on what the callback yields; record its page when that is done or has failed."""
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
        """Record the page of a callback that fails before it yields anything."""
        deferred_from_coro(self._pages.finish(_url_id(response)))


def _url_id(response: Response) -> int:
    assert response.request is not None
    return int(response.request.meta.get(URL_ID, -1))


class FollowedMiddleware(Component):
    """Adds the links of a page to what its callback yields (``FOCUSCRAWL_FOLLOW``).

    It sits nearest to the spider: the links go through the project's spider middlewares as the
    spider's own requests do, so that limits on depth, length and site bind them too.
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
        """Yield what the callback does, then a request for each link."""
        async for each in result:
            yield each
        for url in self._pages.links_of(_url_id(response)):
            if not self._allow or self._allow.match(url):
                yield Request(url, meta={FOLLOWED: True})
