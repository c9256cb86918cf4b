"""Bodies of answers: unpacked, requested only if changed, recorded as WARC."""

from __future__ import annotations

import http
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import DeferredLock
from twisted.internet.threads import deferToThread

from focuscrawl.crawl_config import RECORD_LIVE, RECORDING_FILE
from focuscrawl.engine.component import Component
from focuscrawl.engine.visits import OWN, ROBOTS, URL_ID, TooLargeError, UnpackingError
from focuscrawl.foundation.urls import normalize
from focuscrawl.webs import WarcRecorder
from focuscrawl.webs.warc_recorder import WarcSeries

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response


_LARGE = 100_000  # bytes as they were sent; they may be gzip members by the thousand
_MOST_CODINGS = 2  # as many as a server and a proxy before it add by mistake


class CompressionMiddleware(HttpCompressionMiddleware):
    """Scrapy's own, which stops at ``DOWNLOAD_MAXSIZE``; its failures are named and counted.

    Many codings upon each other are refused: each takes as long as unpacking a large page.
    """

    async def process_response(  # type: ignore[override]  # Scrapy's is no coroutine
        self, request: Request, response: Response
    ) -> Request | Response:
        """Unpack the body; a large one in a thread.

        Raises
        ------
        TooLargeError
            It is larger than ``DOWNLOAD_MAXSIZE``.
        UnpackingError
            It is not in its ``Content-Encoding``, or was packed too often.
        """
        codings = b",".join(response.headers.getlist("Content-Encoding"))
        if codings.count(b",") >= _MOST_CODINGS:
            raise UnpackingError(f"packed {codings.count(b',') + 1} times over")
        if ROBOTS in request.meta:  # it may be loaded beyond the limit, but not unpacked
            request = request.replace(meta={})
        try:
            unpack = super().process_response
            if not codings or len(response.body) <= _LARGE:
                return unpack(request, response)
            return await maybe_deferred_to_future(deferToThread(unpack, request, response))
        except IgnoreRequest as error:
            raise TooLargeError(str(error)) from error
        except Exception as error:  # every library has an error of its own, with no common base
            raise UnpackingError(f"no {codings.decode('latin-1')}: {error}") from error


class ConditionalMiddleware(Component):
    """Adds If-None-Match and If-Modified-Since to requests for known pages (RFC 9110, 13.1).

    On with ``FOCUSCRAWL_REVISIT``, for pages of earlier crawls, and with
    ``FOCUSCRAWL_REVISIT_HUBS``, for pages of this one. A server answers 304 if the page has not
    changed. Requests of a project's own spider are left as they are: it wants the page.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if not (self._crawl.config.revisit or self._crawl.config.revisit_hubs):
            raise NotConfigured

    def process_request(self, request: Request) -> None:
        """Add the header fields, if there are any for the URL."""
        if URL_ID in request.meta and OWN not in request.meta:
            for name, value in self._crawl.conditional_headers(request.meta[URL_ID]).items():
                request.headers.setdefault(name, value)


_SECRET = ("authorization", "proxy-authorization", "cookie")  # recordings are passed on


class WarcMiddleware(Component):
    """Writes every exchange to ``FOCUSCRAWL_WARC``: a file name, or 1 for ``pages.warc.gz``.

    ``live`` is that file for crawls that can be judged anew and have no other copy of their pages:
    of the live Web, without knowledge of the topic.

    It sits nearest to the downloader, where answers are as they were sent: compressed, with
    robots.txt, retries and redirects. A relative name is taken from the crawl's folder; the file
    of a resumed crawl is continued. With ``FOCUSCRAWL_WARC_SIZE`` there is one file after another.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        config = self._crawl.config
        name = config.warc
        if name == RECORD_LIVE:
            judged = config.web is None and config.knowledge is None
            name = RECORDING_FILE if judged else None
        if name is None:
            raise NotConfigured
        path, size = self._crawl.folder.path / Path(name), config.warc_size
        self._recorder = WarcSeries(path, size * 10**6) if size else WarcRecorder(path)
        self._one = DeferredLock()

    async def process_response(self, request: Request, response: Response) -> Response:
        """Record the exchange; one after another, and large ones in a thread."""
        took = timedelta(seconds=float(request.meta.get("download_latency") or 0))
        write = partial(
            self._recorder.record,
            request_method=request.method,
            url=normalize(request.url) or request.url,  # a redirected robots.txt has its URL
            request_headers=[
                pair for pair in _pairs(request.headers) if pair[0].lower() not in _SECRET
            ],
            request_body=request.body,
            status=response.status,
            reason=_reason(response.status),
            response_headers=_pairs(response.headers),
            body_raw=response.body,
            ip=str(response.ip_address) if response.ip_address else None,
            at=datetime.now(UTC) - took,
        )
        if len(response.body) <= _LARGE and not self._one.locked:
            write()
            return response
        await maybe_deferred_to_future(self._one.acquire())
        try:
            await maybe_deferred_to_future(deferToThread(write))
        finally:
            self._one.release()
        return response

    def spider_closed(self) -> None:
        """Close the file."""
        self._recorder.close()


def _pairs(headers: Headers) -> list[tuple[str, str]]:
    return [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, values in headers.items()
        for value in values
    ]


def _reason(status: int) -> str:
    # Scrapy does not keep the server's own words
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
