"""Which addresses a crawl may connect to."""

from __future__ import annotations

import ipaddress

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focuscrawl.errors import UserError
from focuscrawl.foundation.networks import Networks, ip_literal

CLOSED = Networks()
V4 = st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address)
V6 = st.integers(0, 2**128 - 1).map(ipaddress.IPv6Address)
#: IANA's registries of special-purpose addresses, but for those that hold IPv4 ones; of all
#: addresses few are in the smaller networks
REGISTRIES = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
    192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24
    198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 ::1/128 ::/128
    64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48
    3fff::/20 5f00::/16 fc00::/7 fe80::/10 ff00::/8"""


@st.composite
def registered(draw: st.DrawFn) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    network = ipaddress.ip_network(draw(st.sampled_from(REGISTRIES.split())))
    return network[draw(st.integers(0, network.num_addresses - 1))]


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("64:ff9b::127.0.0.1", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("10.0.0.0", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("fc00::1", "private"),
        ("fec0::1", "private"),
        ("169.254.169.254", "link-local"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("fd00:ec2::254", "private"),
        ("100.100.100.200", "shared"),
        ("168.63.129.16", "metadata"),
        ("192.0.0.192", "reserved"),
        ("224.0.0.251", "multicast"),
        ("ff02::1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("2002:7f00:1::", "reserved"),
        ("2001::1", "reserved"),
        ("2001:db8::1", "documentation"),
        ("203.0.113.1", "documentation"),
        ("::127.0.0.1", "reserved"),
        ("4000::1", "reserved"),
    ],
)
def test_special_addresses_are_refused_by_their_kind(address: str, kind: str) -> None:
    refusal = CLOSED.refusal(address)
    assert refusal is not None
    assert refusal.endswith(f" {kind} address")
    assert Networks.parse(["0.0.0.0/0", "::/0"]).refusal(address) is None


@pytest.mark.parametrize(
    "address",
    ["93.184.215.14", "8.8.8.8", "172.32.0.1", "100.128.0.1", "::ffff:8.8.8.8", "2606:4700::1111"],
)
def test_public_addresses_are_not(address: str) -> None:
    assert CLOSED.refusal(address) is None


@given(V4 | V6 | registered())
@hypothesis.settings(max_examples=1000)
def test_what_the_standard_library_knows_to_be_special_is_refused(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert CLOSED.refusal(str(address)) is not None


@given(V4)
def test_an_ipv4_address_is_the_same_however_it_is_reached(address: ipaddress.IPv4Address) -> None:
    refused = CLOSED.refusal(str(address))
    assert CLOSED.refusal(f"::ffff:{address}") == refused
    assert CLOSED.refusal(f"64:ff9b::{address}") == refused


@given(V4 | V6)
def test_what_is_named_is_opened_and_nothing_else(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    opened = Networks.parse([" 10.1.0.0/16 ", "127.0.0.1", "fd00::/16", "::1"])
    named = any(
        address in ipaddress.ip_network(network)
        for network in ("10.1.0.0/16", "127.0.0.1/32", "fd00::/16", "::1/128")
    )
    expected = None if named else CLOSED.refusal(str(address))
    assert opened.refusal(str(address)) == expected


def test_an_opened_network_is_opened_for_mapped_addresses_too() -> None:
    opened = Networks.parse(["10.1.2.3/16"])
    assert opened.refusal("::ffff:10.1.255.255") is None
    assert opened.refusal("::ffff:10.2.0.0") is not None
    assert not opened.allows_all


@pytest.mark.parametrize("text", ["", "localhost", "example.org", "/run/docker.sock", "1.2.3"])
def test_what_is_no_address_is_refused(text: str) -> None:
    assert CLOSED.refusal(text) is not None
    with pytest.raises(UserError, match="FOCUSCRAWL_PRIVATE_ADDRESSES"):
        Networks.parse([text])


def test_bare_addresses_are_told_from_names() -> None:
    assert ip_literal("127.0.0.1") == "127.0.0.1"
    assert ip_literal("::1") == "::1"
    assert ip_literal("localhost") is None
    assert ip_literal("1.example") is None
