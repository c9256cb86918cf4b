"""Sites, and the several URLs of one page."""

from __future__ import annotations

import socket

import numpy as np
import pytest

from focuscrawl.distiller import RULES, Sites, registered_domain, stand_ins

HOSTS = ["www.a.org", "a.org:8080", "b.org"]


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.bbc.co.uk", "bbc.co.uk"),
        ("bbc.co.uk", "bbc.co.uk"),
        ("deep.down.example.org:8080", "example.org"),
        ("jo.github.io", "jo.github.io"),
        ("co.uk", "co.uk"),
        ("localhost:6800", "localhost:6800"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]:80", "[::1]:80"),
    ],
)
def test_registered_domains(host: str, domain: str) -> None:
    assert registered_domain(host) == domain


def test_domains_are_told_without_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("asked the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert registered_domain("never-asked-before.example.co.jp") == "example.co.jp"


def test_rules() -> None:
    host = np.array([0, 0, 1, 2])
    sites = {rule: Sites.by(rule, host, HOSTS).of_pages.tolist() for rule in RULES}
    assert sites["host"] == [0, 0, 1, 2]
    assert sites["domain"] == [0, 0, 0, 1]
    assert sites["none"] == [0, 1, 2, 3]


def test_a_crawl_of_one_host_has_no_rule() -> None:
    host = np.array([0, 0, 1])
    within, across = (np.array([0]), np.array([1])), (np.array([0, 1]), np.array([1, 2]))
    assert Sites.fitting(*within, host).rule == "none"
    assert Sites.fitting(*across, host).rule == "host"
    nothing = np.zeros(0, np.int64)
    assert Sites.fitting(nothing, nothing, host).rule == "none"


def test_duplicates_and_redirects_stand_for_other_urls() -> None:
    """0 links to 1, which leads to 2, which leads to 3; 4 repeats 3; 5 is an error; 6 waits."""
    referrer = np.array([-1, 0, 1, 2, 0, 0, 3])
    fetched, duplicate_of = np.array([0, 1, 2, 3, 4, 5]), np.array([-1, -1, -1, -1, 3, -1])
    source = np.array([0, 0, 0, 3])
    stands = stand_ins(fetched, duplicate_of, referrer, source)
    assert stands.tolist() == [0, 3, 3, 3, 3, 5, 6]


def test_a_redirect_to_a_duplicate() -> None:
    stands = stand_ins(
        np.array([0, 1, 2]), np.array([-1, -1, 0]), np.array([-1, 0, 1]), np.array([0])
    )
    assert stands.tolist() == [0, 0, 0]


def test_nothing_stands_for_what_waits() -> None:
    nothing = np.zeros(0, np.int64)
    assert stand_ins(nothing, nothing, np.array([-1, 0]), nothing).tolist() == [0, 1]
