"""Restricts the network addresses that a crawl may connect to; default: public addresses.

A link or the reply of a name server can contain any IP address, including addresses in the user's
network. Special addresses are those of the IANA registries for IPv4 and IPv6 (RFC 6890 and its
successors) and those of cloud metadata services.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    Address = ipaddress.IPv4Address | ipaddress.IPv6Address
    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# The classification by `ipaddress` changes from version to version, so the list is complete.
_SPECIAL: dict[str, tuple[str, ...]] = {
    "loopback": ("127.0.0.0/8", "::1/128"),
    "link-local": ("169.254.0.0/16", "fe80::/10"),  # IPv4: metadata services of most clouds
    "private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    "shared": ("100.64.0.0/10",),  # between a provider and its customers; Alibaba's metadata
    "metadata": ("168.63.129.16/32",),  # Azure's, at a public address
    "unspecified": ("0.0.0.0/8", "::/128"),  # connects to this machine
    "multicast": ("224.0.0.0/4", "ff00::/8"),
    "documentation": (
        *("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),
        *("2001:db8::/32", "3fff::/20"),
    ),
    # protocol assignments, benchmarks, tunnels (which contain any IPv4 address), future use
    "reserved": (
        *("192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4"),
        *("2001::/23", "2002::/16"),
    ),
}
_KINDS: tuple[tuple[Network, str], ...] = tuple(
    (ipaddress.ip_network(network), kind)
    for kind, networks in _SPECIAL.items()
    for network in networks
)
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # all IPv6 addresses assigned so far
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SETTING = "FOCUSCRAWL_PRIVATE_ADDRESSES"


@dataclass(frozen=True)
class Networks:
    """The IP networks to which a crawl may connect.

    Attributes
    ----------
    allowed : tuple of IPv4Network and IPv6Network
        Special networks that the user allows.
    """

    allowed: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, names: Iterable[str]) -> Self:
        """Parse addresses and networks: ``127.0.0.1``, ``10.1.0.0/16``, ``::1``.

        Raises
        ------
        UserError
            A name is neither an address nor a network.
        """
        allowed = []
        for name in names:
            try:
                allowed.append(ipaddress.ip_network(str(name).strip(), strict=False))
            except ValueError:
                raise UserError(
                    f"{_SETTING}: {str(name)!r} is neither an address nor a network: "
                    "separate them by commas, as in 127.0.0.1,10.1.0.0/16"
                ) from None
        return cls(tuple(allowed))

    @property
    def allows_all(self) -> bool:
        """Whether connections to every address are allowed."""
        return {4, 6} <= {each.version for each in self.allowed if each.prefixlen == 0}

    def refusal(self, address: str) -> str | None:
        """Return why the crawl may not connect to an IP address; None if it may."""
        try:
            target = _ipv4_target(ipaddress.ip_address(address))
        except ValueError:
            return "not an IP address"
        if any(target in network for network in self.allowed):
            return None
        kind = _kind(target)
        if kind is None:
            return None
        return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} address"


def ip_literal(host: str) -> str | None:
    """Return `host` if it is an IP address without brackets; None if it is a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return None
    return host


def _ipv4_target(address: Address) -> Address:
    """Return the IPv4 address that a mapped or NAT64 address leads to, or else `address`."""
    if isinstance(address, ipaddress.IPv6Address):
        address = ipaddress.IPv6Address(int(address))  # without a zone: fe80::1%eth0
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _kind(address: Address) -> str | None:
    for network, kind in _KINDS:
        if address in network:
            return kind
    if address.version == 6 and address not in _GLOBAL_UNICAST:
        return "reserved"
    return None
