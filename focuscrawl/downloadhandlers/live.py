"""Scrapy's own HTTP handler, kept out of the networks that a crawl has no business in.

A connection is refused by the address it would be made to. Scrapy asks the reactor's name
resolver for the addresses of every host, a bare IP address included, and connects to what it is
told and to nothing else. So the answer is what is checked, as it is given, each time: for pages,
robots.txt and redirects alike, with http and https, whatever the name was found to be before.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.exceptions import CannotResolveHostError, NotSupported
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import Deferred

from focuscrawl.engine.download_errors import PrivateAddressError, TooLargeError
from focuscrawl.engine.private import limit_headers
from focuscrawl.engine.settings_table import PRIVATE_ADDRESSES
from focuscrawl.foundation.networks import literal
from focuscrawl.foundation.urls import normalize

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from focuscrawl.foundation.networks import Networks

_MOST_HEADERS = 256 * 1024  # bytes, early hints included; as much as Chromium reads


@dataclass
class _Attempt:
    """One request: what may be connected to for it, and what its look-ups came to."""

    networks: Networks
    admitted: int = 0
    refusals: list[tuple[str, str]] = field(default_factory=list)

    def admits(self, address: str) -> bool:
        """Tell whether the request may connect to an IP address, and remember it."""
        refusal = self.networks.refusal(address)
        if refusal is None:
            self.admitted += 1
            return True
        self.refusals.append((address, refusal))
        return False

    def error(self, name: str) -> PrivateAddressError:
        """Return what to raise after a refusal."""
        address, refusal = self.refusals[0]
        what = refusal if literal(name) else f"at {address}, {refusal}"
        return PrivateAddressError(f"{name} is {what}; FOCUSCRAWL_PRIVATE_ADDRESSES can open it")


#: the request on whose behalf a name is looked up; None: nobody's, and all is let through
_attempt: ContextVar[_Attempt | None] = ContextVar("attempt", default=None)


class LiveDownloadHandler(HTTP11DownloadHandler):
    """Downloads from public addresses, and from those that ``FOCUSCRAWL_PRIVATE_ADDRESSES`` names.

    Raises `PrivateAddressError` for all others, without having connected. A proxy is the user's
    own choice and may be anywhere. It looks names up by itself, though; so the host of the URL is
    looked up here as well, and refused if any of its addresses is, or if there are none.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        limit_headers(self, _MOST_HEADERS, _too_many_headers)
        self._networks = PRIVATE_ADDRESSES.of(crawler.settings)

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
        attempt = _Attempt(self._networks)
        address = literal(name)
        if address is not None and not attempt.admits(address):
            raise attempt.error(name)
        _guard_resolver()
        if request.meta.get("proxy"):
            await _check_for_proxy(name, attempt)
        else:
            _attempt.set(attempt)
        try:
            return await super().download_request(sent)
        except Exception as error:
            if attempt.refusals and not attempt.admitted:
                raise attempt.error(name) from error
            raise
        finally:
            _attempt.set(None)
            request.meta.update(sent.meta)  # how long it took


def _check_name(name: str) -> None:
    """Raise if no name server can be asked for `name`; not every resolver says so itself."""
    try:
        name.encode("idna")
    except UnicodeError:
        raise CannotResolveHostError(f"{name} has an empty or an overlong label") from None


def _too_many_headers() -> TooLargeError:
    return TooLargeError(f"more than {_MOST_HEADERS // 1024} KiB of headers")


async def _check_for_proxy(name: str, attempt: _Attempt) -> None:
    """Look up a host that a proxy is going to connect to."""
    if attempt.networks.all_open:
        return
    from twisted.internet import reactor  # noqa: PLC0415 - importing it earlier would choose one

    looked_up: Deferred[None] = Deferred()
    reactor.nameResolver.resolveHostName(
        _AdmittingReceiver(_EndReceiver(looked_up), attempt), name
    )
    await maybe_deferred_to_future(looked_up)
    if attempt.refusals:
        raise attempt.error(name)
    if not attempt.admitted:
        raise PrivateAddressError(
            f"{name} cannot be looked up here, and the proxy could find it anywhere; "
            "FOCUSCRAWL_PRIVATE_ADDRESSES=0.0.0.0/0,::/0 leaves that to the proxy"
        )


def _guard_resolver() -> None:
    """Put a `GuardedResolver` before the reactor's name resolver, whichever that is by now."""
    from twisted.internet import reactor  # noqa: PLC0415 - importing it earlier would choose one

    if not isinstance(reactor.nameResolver, GuardedResolver):
        reactor.installNameResolver(GuardedResolver(reactor.nameResolver))


class GuardedResolver:
    """Withholds the addresses that the request it is asked for may not be connected to.

    A Twisted `IHostnameResolver` before another one. Look-ups that others make in the same
    process, a feed's storage say, it leaves alone.
    """

    def __init__(self, resolver: Any) -> None:
        self._resolver = resolver

    def resolveHostName(  # noqa: N802 - Twisted's name
        self, receiver: Any, host_name: str, *args: Any, **kwargs: Any
    ) -> Any:
        """Look up a host."""
        attempt = _attempt.get()
        if attempt is not None:
            receiver = _AdmittingReceiver(receiver, attempt)
        return self._resolver.resolveHostName(receiver, host_name, *args, **kwargs)


class _AdmittingReceiver:
    """A Twisted `IResolutionReceiver` that passes on the addresses an attempt admits."""

    def __init__(self, receiver: Any, attempt: _Attempt) -> None:
        self._attempt = attempt
        self._receiver = receiver
        self.resolutionBegan = receiver.resolutionBegan
        self.resolutionComplete = receiver.resolutionComplete

    def addressResolved(self, address: Any) -> None:  # noqa: N802 - Twisted's name
        if self._attempt.admits(str(getattr(address, "host", address))):
            self._receiver.addressResolved(address)


class _EndReceiver:
    """A Twisted `IResolutionReceiver` that fires a Deferred at the end of a look-up."""

    def __init__(self, finished: Deferred[None]) -> None:
        self._finished = finished

    def resolutionBegan(self, resolutionInProgress: Any) -> None:  # noqa: N802, N803
        """Nothing to do yet."""

    def addressResolved(self, address: Any) -> None:  # noqa: N802
        """Nothing to do yet."""

    def resolutionComplete(self) -> None:  # noqa: N802 - Twisted's name
        self._finished.callback(None)
