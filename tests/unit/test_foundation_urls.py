"""URLs in the form the crawler compares."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.errors import UserError
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
    with pytest.raises(UserError) as refused:
        urls.parse_url(written, "row 3")
    assert str(refused.value) == f"row 3 is not an http(s) URL: {way_out}"


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


@pytest.mark.parametrize(
    ("reference", "encoding", "expected"),
    [
        ("/s?q=велосипед", "cp1251", "/s?q=%E2%E5%EB%EE%F1%E8%EF%E5%E4"),
        ("/s?q=вело", "utf-16-le", "/s?q=%D0%B2%D0%B5%D0%BB%D0%BE"),
        ("/путь?q=я", "koi8-r", "/%D0%BF%D1%83%D1%82%D1%8C?q=%D1"),
        ("//bücher.example/?é", "cp1252", "http://xn--bcher-kva.example/?%E9"),
        ("?a=%D1%8F&b=é+ü", "cp1252", "/dir/page.html?a=%D1%8F&b=%E9+%FC"),
        (" \t?é é'\n<x> \n", "cp1252", "/dir/page.html?%E9%20%E9%27%3Cx%3E"),
        ("?q=日本", "cp932", "/dir/page.html?q=%93%FA%96{"),
        ("?q=日本語", "euc_jp", "/dir/page.html?q=%C6%FC%CB%DC%B8%EC"),
        ("?q=日&x", "iso2022_jp", "/dir/page.html?q=%1B$BF|%1B(B&x"),
        ("?q=中文", "big5hkscs", "/dir/page.html?q=%A4%A4%A4%E5"),
        ("?q=é中&x", "big5hkscs", "/dir/page.html?q=%26%23233%3B%A4%A4&x"),
        ("?q=é日", "euc_jp", "/dir/page.html?q=%26%23233%3B%C6%FC"),
        ("?q=é€я", "cp1252", "/dir/page.html?q=%E9%80%26%231103%3B"),
        ("?q=x#é", "cp1252", "/dir/page.html?q=x"),
        ("#?é", "cp1252", "/dir/page.html?q=1"),
        ("/é", "cp1252", "/%C3%A9"),
        ("mailto:me?subject=é", "cp1252", None),
    ],
)
def test_a_query_is_in_the_encoding_of_the_page(
    reference: str, encoding: str, expected: str | None
) -> None:
    if expected is not None and expected.startswith("/"):
        expected = f"http://site.example{expected}"
    assert urls.resolve(PAGE, [reference, "a"], encoding)[0] == expected


def test_queries_pass_the_percent_encoding_tests_of_the_url_standard(
    conformance_dir: Path,
) -> None:
    cases = json.loads((conformance_dir / "urls" / "percent-encoding.json").read_text("utf-8"))
    names = {"big5": "big5hkscs", "euc-kr": "cp949", "iso-2022-jp": "iso2022_jp"} | {
        "shift_jis": "cp932",
        "windows-1252": "cp1252",
    }
    failed = [
        (case["input"], label)
        for case in cases
        if isinstance(case, dict)
        for label, query in case["output"].items()
        if urls.resolve(PAGE, [f"?{case['input']}"], names.get(label, label))
        != [f"http://site.example/dir/page.html?{query}"]
    ]
    assert failed == []


def test_urls_pass_the_tests_of_the_url_standard(conformance_dir: Path) -> None:
    cases = json.loads((conformance_dir / "urls" / "urltestdata.json").read_text("utf-8"))
    failed = []
    for case in cases:
        if isinstance(case, str):
            continue
        href = case.get("href", "")  # none where the URL is invalid
        expected = href.partition("#")[0] if href.startswith(("http:", "https:")) else None
        base = case.get("base")
        found = urls.resolve(base, [case["input"]])[0] if base else urls.normalize(case["input"])
        if found != expected:
            failed.append(href)
    # can_ada refuses these host names, which the standard only validates for registries
    hosts = [href for href in failed if "@" not in href]  # the others have credentials
    assert len(hosts) == 7
    assert all("xn--" in href for href in hosts)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"/caf\xe9", "/caf%E9"),
        ("/café".encode(), "/caf%C3%A9"),
        (b"?q=\xe2\xe5\xeb\xee", "/dir/page.html?q=%E2%E5%EB%EE"),
        ("/日本".encode("shift_jis"), "/%93%FA%96%7B"),
        ("//bücher.example/é".encode(), "http://xn--bcher-kva.example/%C3%A9"),
        (b"/a%E9 b", "/a%E9%20b"),
        (b"mailto:\xe9", None),
    ],
)
def test_raw_bytes_of_a_header_stay_in_the_url(sent: bytes, expected: str | None) -> None:
    if expected is not None and expected.startswith("/"):
        expected = f"http://site.example{expected}"
    assert urls.resolve_header(PAGE, sent.decode("latin-1")) == expected


@pytest.mark.parametrize(
    ("host", "reserved"),
    [
        ("a.demo.example", True),
        ("b.TEST:8080", True),
        ("x.invalid.", True),
        ("example.com", True),
        ("www.Example.org", True),
        ("myexample.com", False),
        ("example.edu", False),
        ("test.python.org", False),
        ("localhost:8000", False),
        ("app.localhost", False),
        ("127.0.0.1", False),
    ],
)
def test_names_for_examples_and_tests_are_reserved(host: str, reserved: bool) -> None:
    assert urls.is_reserved(f"http://{host}/a.test") == reserved
