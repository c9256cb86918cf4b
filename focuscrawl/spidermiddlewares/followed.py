"""All links of a page as requests of its callback, where a project wants them followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.exceptions import NotConfigured

from focuscrawl.engine.meta import FOLLOWED, URL_ID
from focuscrawl.engine.open_pages import open_pages_of
from focuscrawl.engine.settings_table import ALLOW, FOLLOW
from focuscrawl.foundation.url_lists import UrlPatterns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response


class FollowedMiddleware:
    """Adds the links of a page to what its callback yields (``FOCUSCRAWL_FOLLOW``).

    It sits nearest to the spider: the links go through the project's spider middlewares as the
    spider's own requests do, so that limits on depth, length and site bind them too.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._pages = open_pages_of(crawler)
        self._allow = UrlPatterns(ALLOW.of(crawler.settings))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware, or raise NotConfigured."""
        if not FOLLOW.of(crawler.settings) or getattr(crawler.spider, "yields_visits", False):
            raise NotConfigured
        return cls(crawler)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Yield what the callback does, then a request for each link."""
        async for each in result:
            yield each
        assert response.request is not None
        for url in self._pages.links_of(response.request.meta.get(URL_ID, -1)):
            if not self._allow or self._allow.match(url):
                yield Request(url, meta={FOLLOWED: True})
