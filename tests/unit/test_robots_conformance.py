"""The robots.txt parser against Google's specification test and files of crawler-commons."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path

import pytest
from scrapy.utils.test import get_crawler

from focuscrawl.downloadermiddlewares.robots import RobotRules

_FIELD = re.compile(
    r'\b(robotstxt|testurl|useragent|expected_outcome): *((?:"(?:\\.|[^"\\])*"\s*)+|[A-Z]+)'
)
# Cases whose outcome differs on purpose: path, crawler and expected outcome
_DIFFERENT = {
    # "The /robots.txt URI is implicitly allowed" (RFC 9309, section 2.2.2).
    ("/robots.txt", "asdfbot", "DISALLOWED"),
    ("/robots.txt", "BarBot", "DISALLOWED"),
    ("/robots.txt", "XYZ", "DISALLOWED"),
    ("/robots.txt", "AB", "DISALLOWED"),
    # The test expects an encoded URL. We encode it as section 2.2.2 asks.
    ("/foo/bar/\u30c4", "FooBot", "DISALLOWED"),
    ("/foo/bar/baz", "FooBot", "DISALLOWED"),  # matches /foo/bar/%62%61%7A
    # Google compares the crawler's name with the space. We compare its first word, "Foo".
    ("/x/y", "Foo Bar", "DISALLOWED"),
    # A group for "AB42bot" is for a crawler of this whole name. Google takes it for "AB".
    ("/foo/bar", "AB42bot", "ALLOWED"),
    ("/", "AB42bot", "ALLOWED"),
    ("/", "AB", "DISALLOWED"),
}


def cases(text: str) -> Iterator[tuple[bytes, str, str, str]]:
    """Yield robots.txt, URL, crawler and expected outcome of the cases of a test file."""
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(text):
        latin = value.encode().decode("latin-1")  # a character for each byte
        fields[name] = literal_eval(f"({latin})") if value.startswith('"') else value
        if name == "expected_outcome":
            robots, url, agent = (
                fields[key].encode("latin-1") for key in ("robotstxt", "testurl", "useragent")
            )
            yield robots, url.decode(), agent.decode(), value


def test_the_specification_test_passes_except_for_explained_differences(
    conformance_dir: Path,
) -> None:
    crawler = get_crawler()
    count, different = 0, []
    for file in conformance_dir.glob("robots/ctc/*/*.textproto"):
        for robots, url, agent, expected in cases(file.read_text()):
            allowed = RobotRules.from_crawler(crawler, robots).allowed(url, agent)
            count += 1
            if allowed != (expected == "ALLOWED"):
                different.append((re.sub(r"^https?://[^/]*", "", url), agent, expected))
    assert count == 400
    assert set(different) == _DIFFERENT
    assert len(different) == 11  # /foo/bar/ツ occurs twice


@pytest.mark.parametrize("encoding", ["utf8", "utf16be", "utf16le"])
def test_files_with_a_byte_order_mark_are_obeyed(conformance_dir: Path, encoding: str) -> None:
    file = conformance_dir / f"robots/crawler-commons/robots-with-{encoding}-bom.txt"
    rules = RobotRules.from_crawler(get_crawler(), file.read_bytes())
    assert not rules.allowed("http://a.example/login.aspx", "focuscrawl")
    assert rules.allowed("http://a.example/", "focuscrawl")
