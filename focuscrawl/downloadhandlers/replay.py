"""Serves a recorded web to Scrapy, so that a replay runs the same engine as a live crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.http import Headers
from scrapy.responsetypes import responsetypes

from focuscrawl.binding import crawl_of
from focuscrawl.urls import normalize

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class ReplayDownloadHandler:
    """Answers from the crawl's recorded web; what is not recorded is a 404. Asks no network."""

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        self._crawl = crawl_of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the handler of a crawler whose crawl is open."""
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        """Return the recorded answer."""
        web = self._crawl.web
        assert web is not None
        url = normalize(request.url)
        known = None if url is None else web.resolve([url])[0]
        answer = None if known is None else web.fetch(known)
        if answer is None:
            status, headers, body = 404, Headers({"Content-Type": "text/plain"}), b""
        else:
            status, body = answer.status, answer.body
            headers = Headers()
            for name, value in answer.headers:
                headers.appendlist(name, value)
        response_class = responsetypes.from_args(headers=headers, url=request.url, body=body)
        return response_class(
            request.url, status=status, headers=headers, body=body, request=request
        )

    async def close(self) -> None:
        """Nothing to give back."""
