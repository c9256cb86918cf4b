"""The download handler for the live Web, which refuses to connect to private addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.exceptions import CannotResolveHostError, NotSupported
from scrapy.utils.httpobj import urlparse_cached

from focuscrawl.engine.address_guard import (
    ADDRESS_CHECK,
    EVERYWHERE,
    AddressCheck,
    check_for_proxy,
    guard_resolver,
    refusal_error,
)
from focuscrawl.engine.component import config_of
from focuscrawl.engine.private import limit_connections
from focuscrawl.engine.visits import NoStatusError, TooLargeError
from focuscrawl.foundation.networks import ip_literal
from focuscrawl.foundation.urls import normalize

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


_MAX_HEADERS = 256 * 1024  # bytes, including early hints; the limit of Chromium
_DIGITS_SHOWN = 20  # digits shown of an invalid status


class LiveDownloadHandler(HTTP11DownloadHandler):
    """Downloads only from public addresses, and from ``FOCUSCRAWL_PRIVATE_ADDRESSES``.

    For all other addresses, the handler raises `PrivateAddressError` before it sends anything. The
    module `focuscrawl.engine.address_guard` filters the results of the name resolver, and the
    handler also checks the address of the connection.

    The address of a proxy is not checked, because the user chose the proxy. A proxy resolves names
    itself. With a proxy, the handler also resolves the host of the URL, and refuses the request if
    the host has no address or any refused address.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._networks = config_of(crawler).private_addresses
        self._proxy_handler = HTTP11DownloadHandler(crawler)  # whose peers are proxies
        limit_connections(self, _MAX_HEADERS, _too_many_headers, self._check_peer)
        limit_connections(self._proxy_handler, _MAX_HEADERS, _too_many_headers)

    async def download_request(self, request: Request) -> Response:
        """Return the response to a request."""
        url = normalize(request.url)
        if url is None:
            raise NotSupported(f"no http(s) URL: {request.url}")
        sent = request
        if "@" in urlparse_cached(request).netloc or request.meta.get("proxy"):
            # without user name and password, and with a host that a proxy cannot misread
            sent = request.replace(url=url)
        name = urlsplit(url).hostname or ""
        _check_name(name)
        address_check = AddressCheck(self._networks)
        address = ip_literal(name)
        if address is not None and not address_check.admits(address):
            raise address_check.error(name)
        try:
            response = await self._download(sent, name, address_check)
        finally:
            ADDRESS_CHECK.set(None)
            request.meta.update(sent.meta)  # such as the download latency
        if not 100 <= response.status <= 599:
            raise NoStatusError(f"status {str(response.status)[:_DIGITS_SHOWN]}")
        return response

    async def _download(
        self, request: Request, name: str, address_check: AddressCheck
    ) -> Response:
        guard_resolver(self._networks)
        ADDRESS_CHECK.set(address_check)
        if request.meta.get("proxy"):
            await check_for_proxy(name, address_check)
            ADDRESS_CHECK.set(AddressCheck(EVERYWHERE))  # for the name of the proxy
            return await self._proxy_handler.download_request(request)
        try:
            return await super().download_request(request)
        except _PeerError as error:
            raise refusal_error(name, str(error)) from None
        except Exception as error:
            if address_check.refusals and not address_check.admitted:
                raise address_check.error(name) from error
            raise

    async def close(self) -> None:
        """Close the persistent connections."""
        await self._proxy_handler.close()
        await super().close()

    def _check_peer(self, address: str) -> None:
        why = self._networks.refusal(address)
        if why is not None:
            raise _PeerError(f"at {address}, {why}")


class _PeerError(Exception):
    """The address of the connected server is refused."""


def _check_name(name: str) -> None:
    # such a name cannot be resolved, and not every resolver raises an error
    try:
        name.encode("idna")
    except UnicodeError:
        raise CannotResolveHostError(f"{name} has an empty or an overlong label") from None


def _too_many_headers() -> TooLargeError:
    return TooLargeError(f"more than {_MAX_HEADERS // 1024} KiB of headers")
