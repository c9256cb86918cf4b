"""A guard before the name resolver: withholds addresses that the crawl may not connect to.

Scrapy asks the reactor's name resolver for the addresses of every host, a bare IP address
included, and connects to nothing else. So every answer of the resolver is checked: for pages,
robots.txt and redirects, with http and https, whatever the name resolved to before.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from focuscrawl.engine.visits import PrivateAddressError
from focuscrawl.foundation.networks import Networks, ip_literal

EVERYWHERE = Networks.parse(["0.0.0.0/0", "::/0"])


@dataclass
class Attempt:
    """One request: what it may connect to, and the results of its look-ups."""

    networks: Networks
    admitted: int = 0
    refusals: list[tuple[str, str]] = field(default_factory=list)

    def admits(self, address: str) -> bool:
        """Tell whether the request may connect to an IP address, and remember it."""
        why = self.networks.refusal(address)
        if why is None:
            self.admitted += 1
            return True
        self.refusals.append((address, why))
        return False

    def error(self, name: str) -> PrivateAddressError:
        """Return what to raise after a refusal."""
        address, why = self.refusals[0]
        return refusal(name, why if ip_literal(name) else f"at {address}, {why}")


#: the request on whose behalf a name is looked up; None: unknown
ATTEMPT: ContextVar[Attempt | None] = ContextVar("attempt", default=None)


def guard_resolver(networks: Networks) -> None:
    """Put a `GuardedResolver` before the present name resolver of the reactor.

    Parameters
    ----------
    networks : what is open to look-ups on behalf of no request
    """
    from twisted.internet import reactor  # noqa: PLC0415 - importing it earlier would choose one

    if not isinstance(reactor.nameResolver, GuardedResolver):
        reactor.installNameResolver(GuardedResolver(reactor.nameResolver, networks))


async def check_for_proxy(name: str, attempt: Attempt) -> None:
    """Look up a host that a proxy is going to connect to.

    Raises
    ------
    PrivateAddressError
        It has an address that is refused, or none.
    """
    if attempt.networks.allows_all:
        return
    from twisted.internet import reactor  # noqa: PLC0415 - importing it earlier would choose one

    looked_up: Deferred[None] = Deferred()
    reactor.nameResolver.resolveHostName(_EndReceiver(looked_up), name)
    await maybe_deferred_to_future(looked_up)
    if attempt.refusals:
        raise attempt.error(name)
    if not attempt.admitted:
        raise PrivateAddressError(
            f"{name} cannot be looked up here, and the proxy could find it anywhere; "
            "FOCUSCRAWL_PRIVATE_ADDRESSES=0.0.0.0/0,::/0 leaves that to the proxy"
        )


def refusal(name: str, what: str) -> PrivateAddressError:
    """Return what to raise for a host that is `what`."""
    return PrivateAddressError(f"{name} is {what}; FOCUSCRAWL_PRIVATE_ADDRESSES can open it")


class GuardedResolver:
    """Withholds the addresses that a request may not connect to.

    A Twisted `IHostnameResolver` before another one. Look-ups on behalf of no request, by a part
    of the project or another handler, get the addresses that the crawl may connect to.
    """

    def __init__(self, resolver: Any, networks: Networks) -> None:
        self._resolver = resolver
        self._networks = networks

    def resolveHostName(  # noqa: N802 - Twisted's name
        self, receiver: Any, host_name: str, *args: Any, **kwargs: Any
    ) -> Any:
        """Look up a host."""
        attempt = ATTEMPT.get() or Attempt(self._networks)
        receiver = _AdmittingReceiver(receiver, attempt)
        return self._resolver.resolveHostName(receiver, host_name, *args, **kwargs)


class _AdmittingReceiver:
    """A Twisted `IResolutionReceiver` that passes on the addresses an attempt admits."""

    def __init__(self, receiver: Any, attempt: Attempt) -> None:
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
