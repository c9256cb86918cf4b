"""AutoThrottle's delay of a host, for the frontier to keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.engine.binding import crawl_of
from focuscrawl.engine.meta import URL_ID
from focuscrawl.engine.private import slot_delay

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from focuscrawl.crawl import Crawl


class ThrottleMiddleware:
    """Lets the frontier wait as long between two pages of a host as the downloader's slot does.

    A request that waited in the slot would hold a place that another host could have used.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl: Crawl = crawl_of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware of a crawler whose crawl is open."""
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        """Hand on the delay of the host's slot, which an answer may have changed."""
        number = request.meta.get(URL_ID)
        if number is not None:
            delay = slot_delay(self._crawler, request.meta["download_slot"])
            if delay is not None:
                self._crawl.frontier.set_delay(self._crawl.urls.host(number), delay)
        return response
