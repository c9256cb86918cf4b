"""Scrapy download handlers: of the live Web, and of a recorded one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.exceptions import CannotResolveHostError, NotSupported
from scrapy.http import Headers
from scrapy.utils.httpobj import urlparse_cached

from focuscrawl.engine.address_guard import (
    ATTEMPT,
    EVERYWHERE,
    Attempt,
    check_for_proxy,
    guard_resolver,
    refusal,
)
from focuscrawl.engine.component import Component, config_of
from focuscrawl.engine.private import limit_connections, response_class
from focuscrawl.engine.visits import NoStatusError, NotInArchiveError, TooLargeError
from focuscrawl.foundation.networks import literal
from focuscrawl.foundation.urls import normalize
from focuscrawl.webs.web_protocol import not_modified

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from focuscrawl.webs.web_protocol import Answer


_MOST_HEADERS = 256 * 1024  # bytes, early hints included; as much as Chromium reads
_SHOWN = 20  # digits of what is no status
_SINCE = "If-Modified-Since"
_KEPT = frozenset({"etag", "last-modified", "date", "cache-control", "expires", "vary"})


class LiveDownloadHandler(HTTP11DownloadHandler):
    """Downloads from public addresses, and from those that ``FOCUSCRAWL_PRIVATE_ADDRESSES`` names.

    Raises `PrivateAddressError` for all others, without having sent anything: addresses are
    withheld by `focuscrawl.engine.address_guard`, and the one that was connected to is checked
    once more, whoever resolved the name. A proxy is the user's own choice and may be anywhere. It
    looks names up by itself, so the host of the URL is looked up here as well, and refused if any
    of its addresses is, or if there are none. A request is made once; retries come when due.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._networks = config_of(crawler).private_addresses
        self._by_proxy = HTTP11DownloadHandler(crawler)  # whose peers are proxies
        limit_connections(self, _MOST_HEADERS, _too_many_headers, self._check_peer)
        limit_connections(self._by_proxy, _MOST_HEADERS, _too_many_headers)

    async def download_request(self, request: Request) -> Response:
        """Return the answer to a request."""
        url = normalize(request.url)
        if url is None:
            raise NotSupported(f"no http(s) URL: {request.url}")
        sent = request
        if "@" in urlparse_cached(request).netloc or request.meta.get("proxy"):
            # without name and password, and so that a proxy cannot take it for another host
            sent = request.replace(url=url)
        name = urlsplit(url).hostname or ""
        _check_name(name)
        attempt = Attempt(self._networks)
        address = literal(name)
        if address is not None and not attempt.admits(address):
            raise attempt.error(name)
        try:
            response = await self._download(sent, name, attempt)
        finally:
            ATTEMPT.set(None)
            request.meta.update(sent.meta)  # how long it took
        if not 100 <= response.status <= 599:
            raise NoStatusError(f"status {str(response.status)[:_SHOWN]}")
        return response

    async def _download(self, request: Request, name: str, attempt: Attempt) -> Response:
        guard_resolver(self._networks)
        ATTEMPT.set(attempt)
        if request.meta.get("proxy"):
            await check_for_proxy(name, attempt)
            ATTEMPT.set(Attempt(EVERYWHERE))  # for the proxy's own name
            return await self._by_proxy.download_request(request)
        try:
            return await super().download_request(request)
        except _PeerError as error:
            raise refusal(name, str(error)) from None
        except Exception as error:
            if attempt.refusals and not attempt.admitted:
                raise attempt.error(name) from error
            raise

    async def close(self) -> None:
        """Close the connections that were kept."""
        await self._by_proxy.close()
        await super().close()

    def _check_peer(self, address: str) -> None:
        why = self._networks.refusal(address)
        if why is not None:
            raise _PeerError(f"at {address}, {why}")


class _PeerError(Exception):
    """The server that was connected to is at a refused address."""


def _check_name(name: str) -> None:
    # no name server can look such a name up, and not every resolver raises an error
    try:
        name.encode("idna")
    except UnicodeError:
        raise CannotResolveHostError(f"{name} has an empty or an overlong label") from None


def _too_many_headers() -> TooLargeError:
    return TooLargeError(f"more than {_MOST_HEADERS // 1024} KiB of headers")


class ReplayDownloadHandler(Component):
    """Answers from the crawl's recorded web; what is not recorded is a 404. Asks no network."""

    lazy = False

    async def download_request(self, request: Request) -> Response:
        """Return the recorded answer.

        Raises
        ------
        TooLargeError
            It is larger than a crawl takes in.
        NotInArchiveError
            The web is an archive that lacks what its index names.
        """
        web = self._crawl.web
        assert web is not None
        url = normalize(request.url)
        known = None if url is None else web.resolve([url])[0]
        answer = None if known is None else web.fetch(known)
        if answer is not None and answer.too_large:
            raise TooLargeError("the recorded body")
        if answer is not None and answer.failure:
            raise NotInArchiveError(answer.failure)
        if answer is None:
            status, headers, body = 404, Headers({"Content-Type": "text/plain"}), b""
        elif not_modified(answer, _field(request, "If-None-Match"), _field(request, _SINCE)):
            status, headers, body = 304, _headers(answer, _KEPT), b""
        else:
            status, body = answer.status, answer.body
            headers = _headers(answer)
        kind = response_class(headers, request.url, body)
        return kind(request.url, status=status, headers=headers, body=body, request=request)

    async def close(self) -> None:
        """Nothing to give back."""


def _field(request: Request, name: str) -> str | None:
    value = request.headers.get(name)
    return None if value is None else value.decode("latin-1")


def _headers(answer: Answer, only: frozenset[str] | None = None) -> Headers:
    headers = Headers()
    for name, value in answer.headers:
        if only is None or name.lower() in only:
            headers.appendlist(name, value)
    return headers
