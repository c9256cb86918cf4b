"""Prevents connections to private addresses, by a filter of the name resolver's results.

Scrapy connects only to addresses that the reactor's name resolver returns, even for a URL with an
IP address. The filter covers http and https requests for pages, robots.txt and redirects, even if
a host name resolves to another address than before.
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
class AddressCheck:
    """Checks the IP addresses that a request may connect to, and records the results."""

    networks: Networks
    admitted: int = 0
    refusals: list[tuple[str, str]] = field(default_factory=list)

    def admits(self, address: str) -> bool:
        """Tell whether the request may connect to an IP address, and record the result."""
        why = self.networks.refusal(address)
        if why is None:
            self.admitted += 1
            return True
        self.refusals.append((address, why))
        return False

    def error(self, name: str) -> PrivateAddressError:
        """Return the exception for the first IP address that was refused."""
        address, why = self.refusals[0]
        return refusal_error(name, why if ip_literal(name) else f"at {address}, {why}")


#: the request for which a name is looked up; None if unknown
ADDRESS_CHECK: ContextVar[AddressCheck | None] = ContextVar("address_check", default=None)


def guard_resolver(networks: Networks) -> None:
    """Replace the name resolver of the reactor by a `GuardedResolver`."""
    from twisted.internet import reactor  # noqa: PLC0415 - importing it earlier would choose one

    if not isinstance(reactor.nameResolver, GuardedResolver):
        reactor.installNameResolver(GuardedResolver(reactor.nameResolver, networks))


async def check_for_proxy(name: str, address_check: AddressCheck) -> None:
    """Resolve the host that a proxy will connect to, and check the addresses of the host.

    Raises
    ------
    PrivateAddressError
        An address of the host is refused, or the host has no address.
    """
    if address_check.networks.allows_all:
        return
    from twisted.internet import reactor  # noqa: PLC0415 - importing it earlier would choose one

    looked_up: Deferred[None] = Deferred()
    reactor.nameResolver.resolveHostName(_EndReceiver(looked_up), name)
    await maybe_deferred_to_future(looked_up)
    if address_check.refusals:
        raise address_check.error(name)
    if not address_check.admitted:
        raise PrivateAddressError(
            f"{name} has no known address, and the proxy could connect to a private one; set "
            "FOCUSCRAWL_PRIVATE_ADDRESSES=0.0.0.0/0,::/0 to allow any address"
        )


def refusal_error(name: str, what: str) -> PrivateAddressError:
    """Return the exception for a refused host; ``what`` is, for example, "a private address"."""
    return PrivateAddressError(
        f"{name} is {what}; add the address to FOCUSCRAWL_PRIVATE_ADDRESSES to allow it"
    )


class GuardedResolver:
    """Twisted `IHostnameResolver` that removes addresses to which a request may not connect.

    If a look-up does not come from a download handler of focuscrawl, the resolver applies the
    crawl's setting of allowed addresses.
    """

    def __init__(self, resolver: Any, networks: Networks) -> None:
        self._resolver = resolver
        self._networks = networks

    def resolveHostName(  # noqa: N802 - Twisted's name
        self, receiver: Any, host_name: str, *args: Any, **kwargs: Any
    ) -> Any:
        """Look up a host."""
        address_check = ADDRESS_CHECK.get() or AddressCheck(self._networks)
        receiver = _AdmittingReceiver(receiver, address_check)
        return self._resolver.resolveHostName(receiver, host_name, *args, **kwargs)


class _AdmittingReceiver:
    """Twisted `IResolutionReceiver` that passes on the admitted addresses."""

    def __init__(self, receiver: Any, address_check: AddressCheck) -> None:
        self._address_check = address_check
        self._receiver = receiver
        self.resolutionBegan = receiver.resolutionBegan
        self.resolutionComplete = receiver.resolutionComplete

    def addressResolved(self, address: Any) -> None:  # noqa: N802 - Twisted's name
        if self._address_check.admits(str(getattr(address, "host", address))):
            self._receiver.addressResolved(address)


class _EndReceiver:
    """Twisted `IResolutionReceiver` that fires a Deferred at the end of a look-up."""

    def __init__(self, finished: Deferred[None]) -> None:
        self._finished = finished

    def resolutionBegan(self, resolutionInProgress: Any) -> None:  # noqa: N802, N803
        """Do nothing; the results of the resolver arrive with `resolutionComplete`."""

    def addressResolved(self, address: Any) -> None:  # noqa: N802
        """Do nothing; the results of the resolver arrive with `resolutionComplete`."""

    def resolutionComplete(self) -> None:  # noqa: N802 - Twisted's name
        self._finished.callback(None)
