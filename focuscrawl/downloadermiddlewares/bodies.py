"""Downloader middlewares for response bodies: decompression, conditional requests, WARC files."""

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
from focuscrawl.engine.visits import OWN_REQUEST, ROBOTS, URL_ID, TooLargeError, UnpackingError
from focuscrawl.foundation.urls import normalize
from focuscrawl.webs import WarcRecorder
from focuscrawl.webs.warc_recorder import WarcSeries
from focuscrawl.webs.web_protocol import TRUNCATIONS

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response


_LARGE = 100_000  # compressed bytes; larger bodies are decompressed in a thread
_MAX_CODINGS = 2  # a server and a proxy can each add a coding by mistake


class CompressionMiddleware(HttpCompressionMiddleware):
    """Scrapy's decompression of bodies, which also names and counts each kind of failure.

    Bodies that were compressed many times in a row are refused, because each step of decompression
    can take as long as for a large page.
    """

    async def process_response(  # type: ignore[override]  # Scrapy's is no coroutine
        self, request: Request, response: Response
    ) -> Request | Response:
        """Decompress the body of a response; use a thread for a large body.

        Raises
        ------
        TooLargeError
            The decompressed body is larger than ``DOWNLOAD_MAXSIZE``.
        UnpackingError
            The body does not have its ``Content-Encoding``, or has too many nested codings.
        """
        codings = b",".join(response.headers.getlist("Content-Encoding"))
        if codings.count(b",") >= _MAX_CODINGS:
            raise UnpackingError(f"{codings.count(b',') + 1} nested codings")
        if ROBOTS in request.meta:  # only the decompressed body has a limit
            request = request.replace(meta={})
        try:
            unpack = super().process_response
            if not codings or len(response.body) <= _LARGE:
                return unpack(request, response)
            return await maybe_deferred_to_future(deferToThread(unpack, request, response))
        except IgnoreRequest as error:
            raise TooLargeError(str(error)) from error
        except Exception as error:  # the errors of the decompression libraries have no common base
            raise UnpackingError(f"no {codings.decode('latin-1')}: {error}") from error


class ConditionalMiddleware(Component):
    """Adds If-None-Match and If-Modified-Since to requests for known pages (RFC 9110, 13.1).

    The setting ``FOCUSCRAWL_REVISIT`` enables the middleware for pages of earlier crawls, and
    ``FOCUSCRAWL_REVISIT_HUBS`` for pages of the same crawl. A server answers a conditional request
    with status 304 if the page has not changed. Requests of a project's own spider stay
    unconditional, because the spider's callback needs the page.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if not (self._crawl.config.revisit or self._crawl.config.revisit_hubs):
            raise NotConfigured

    def process_request(self, request: Request) -> None:
        """Add the known conditional headers for the URL of a request."""
        if URL_ID in request.meta and OWN_REQUEST not in request.meta:
            for name, value in self._crawl.conditional_headers(request.meta[URL_ID]).items():
                request.headers.setdefault(name, value)


_SECRET_HEADERS = ("authorization", "proxy-authorization", "cookie")  # never recorded


class WarcMiddleware(Component):
    """Records every request and response in the WARC file ``FOCUSCRAWL_WARC``.

    The value 1 of the setting ``FOCUSCRAWL_WARC`` means the file ``pages.warc.gz``. The value
    ``live`` also means the file ``pages.warc.gz``, but only for crawls of the live Web without a
    knowledge file, because their pages are saved nowhere else.

    The middleware is the one nearest to the downloader, so it records compressed bodies,
    robots.txt, retries and redirects. A relative file name in the setting is relative to the
    crawl's folder. A resumed crawl appends to its WARC file. With the setting
    ``FOCUSCRAWL_WARC_SIZE``, the middleware starts a new WARC file when the present file reaches
    the given size.
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
        self._lock = DeferredLock()

    async def process_response(self, request: Request, response: Response) -> Response:
        """Record the request and the response in the WARC file; use a thread for large bodies."""
        took = timedelta(seconds=float(request.meta.get("download_latency") or 0))
        write = partial(
            self._recorder.record,
            request_method=request.method,
            url=normalize(request.url)
            or request.url,  # the URL of a redirected robots.txt is not normalized
            request_headers=[
                pair for pair in _pairs(request.headers) if pair[0].lower() not in _SECRET_HEADERS
            ],
            request_body=request.body,
            status=response.status,
            reason=_reason(response.status),
            response_headers=_pairs(response.headers),
            body_raw=response.body,
            truncated=_truncation(request, response),
            ip=str(response.ip_address) if response.ip_address else None,
            at=datetime.now(UTC) - took,
        )
        if len(response.body) <= _LARGE and not self._lock.locked:
            write()
            return response
        await maybe_deferred_to_future(self._lock.acquire())
        try:
            await maybe_deferred_to_future(deferToThread(write))
        finally:
            self._lock.release()
        return response

    def spider_closed(self) -> None:
        """Close the WARC file."""
        self._recorder.close()


def _truncation(request: Request, response: Response) -> str:
    """Return the reason why a body is incomplete; empty if it is complete."""
    for flag in response.flags:
        if flag == "download_stopped":  # by `HtmlOnly`, a project's extension, or for its size
            return "length" if ROBOTS in request.meta else "unspecified"
        if flag == "dataloss":  # Scrapy's DOWNLOAD_FAIL_ON_DATALOSS is off
            return "disconnect"
        if flag in TRUNCATIONS:  # of a recorded response
            return flag
    return ""


def _pairs(headers: Headers) -> list[tuple[str, str]]:
    return [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, values in headers.items()
        for value in values
    ]


def _reason(status: int) -> str:
    # Scrapy drops the reason phrase of the server
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
