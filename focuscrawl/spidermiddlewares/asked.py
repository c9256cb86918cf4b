"""What a callback asks for belongs to its page: the page is recorded when the callback is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.utils.defer import deferred_from_coro

from focuscrawl.engine.meta import FOLLOWED, URL_ID
from focuscrawl.engine.open_pages import open_pages_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response


class AskedMiddleware:
    """Keeps the requests of a callback with their page, and tells when it has no more.

    It sits nearest to the engine: what the project's own spider middlewares drop (too deep, too
    long, off site) nobody has asked for.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._pages = open_pages_of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware, or raise NotConfigured."""
        if getattr(crawler.spider, "yields_visits", False):
            raise NotConfigured
        return cls(crawler)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Pass on what the callback yields; record its page when that ends, however it does."""
        number = _number(response)
        try:
            async for each in result:
                if isinstance(each, Request) and number in self._pages:
                    if each.meta.get(FOLLOWED):
                        self._pages.follow(number, each.url)
                        continue
                    self._pages.ask(number, each)
                yield each
        finally:
            await self._pages.finish(number)

    def process_spider_exception(self, response: Response, exception: Exception) -> None:
        """Record the page of a callback that fails before it yields anything."""
        deferred_from_coro(self._pages.finish(_number(response)))


def _number(response: Response) -> int:
    assert response.request is not None
    return int(response.request.meta.get(URL_ID, -1))
