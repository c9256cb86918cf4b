"""URLs in the form the crawler compares."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.foundation import urls

PAGE = "http://site.example/dir/page.html?q=1"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTP://Site.Example:80", "http://site.example/"),
        ("https://site.example:443/a/../b/./c", "https://site.example/b/c"),
        ("http://site.example:8080/A?b=2&a=1", "http://site.example:8080/A?b=2&a=1"),
        (" http://site.example/a b\n", "http://site.example/a%20b"),
        ("http://site.example/#part", "http://site.example/"),
        ("http://me:secret@site.example/x", "http://site.example/x"),
        ("http://me@site.example/x#y", "http://site.example/x"),
        ("http://bücher.example/ä?ö", "http://xn--bcher-kva.example/%C3%A4?%C3%B6"),
        ("http:\\\\site.example\\a", "http://site.example/a"),
        ("http://site.example/?", "http://site.example/?"),
        ("ftp://site.example/", None),
        ("mailto:me@site.example", None),
        ("javascript:void(0)", None),
        ("/relative", None),
        ("", None),
        ("http://", None),
        ("http://[", None),
        ("http://site.example:99999/", None),
        ("http://site.example/\ud800", None),
    ],
)
def test_normalize(url: str, expected: str | None) -> None:
    assert urls.normalize(url) == expected


@pytest.mark.parametrize(
    ("written", "way_out"),
    [
        ("en.wikipedia.org/wiki/Auk", "write https://en.wikipedia.org/wiki/Auk"),
        (" example.org:8080\n", "write https://example.org:8080"),
        ("auk", "a URL starts with http:// or https://"),
        ("ftp://example.org/", "a URL starts with http:// or https://"),
        ("me:secret@example.org", "a URL starts with http:// or https://"),
        ("example.org/a b", "a URL starts with http:// or https://"),
    ],
)
def test_who_leaves_the_scheme_out_is_told_what_to_write(written: str, way_out: str) -> None:
    assert urls.invalid_url_message(written) == f"is not an http(s) URL: {way_out}"


def test_resolve_keeps_the_place_of_every_reference() -> None:
    references = {
        "other": "http://site.example/dir/other",
        "../up": "http://site.example/up",
        "/root#part": "http://site.example/root",
        "?q=2": "http://site.example/dir/page.html?q=2",
        "": PAGE,
        "#part": PAGE,
        "//else.example": "http://else.example/",
        "https://else.example/x": "https://else.example/x",
        "http:other": "http://site.example/dir/other",
        " \tspa\nced ": "http://site.example/dir/spaced",
        "mailto:me@site.example": None,
        "http://[": None,
        "\ud800": None,
        "//me:secret@site.example/": "http://site.example/",
    }
    assert urls.resolve(PAGE, list(references)) == list(references.values())
    assert urls.resolve(PAGE, []) == []


def test_resolve_against_no_url_takes_only_whole_urls() -> None:
    assert urls.resolve("nowhere", ["x", "http://a.example"]) == [None, "http://a.example/"]
    assert urls.resolve("mailto:me", ["x", "http://a.example"]) == [None, "http://a.example/"]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://site.example/", "site.example"),
        ("https://site.example:8080/a", "site.example:8080"),
        ("http://site.example?x=//y/", "site.example"),
        ("http://site.example#x@y", "site.example"),
        ("http://me:secret@site.example/a@b", "site.example"),
        ("http://[::1]:80/", "[::1]:80"),
    ],
)
def test_host(url: str, host: str) -> None:
    assert urls.host(url) == host


@settings(max_examples=200)
@given(st.text(), st.lists(st.one_of(st.text(), st.text(st.sampled_from("htp:/.?#@[]%a1 ")))))
def test_whatever_is_written_resolves_to_a_normal_form_or_to_nothing(
    base: str, references: list[str]
) -> None:
    for start in (base, f"http://site.example/{base}"):
        found = urls.resolve(start, references)
        assert len(found) == len(references)
        for url in found:
            if url is not None:
                assert urls.normalize(url) == url
                assert url.startswith(("http://", "https://"))
                assert "#" not in url
                assert urls.host(url)


@pytest.mark.parametrize(
    "written",
    [
        "http://" + "ü" * 40_000 + ".example/",  # refused unread: such a host takes seconds
        "http://a.example/" + "ü" * 12_000,  # each becomes six characters
    ],
)
def test_what_is_many_times_too_long_is_no_url(written: str) -> None:
    assert urls.normalize(written) is None
    assert urls.resolve("http://a.example/", [written, "b"]) == [None, "http://a.example/b"]


def test_a_base_that_is_many_times_too_long_is_none() -> None:
    base = "http://" + "ü" * 40_000 + ".example/"
    assert urls.resolve(base, ["b", "http://a.example/b"]) == [None, "http://a.example/b"]
