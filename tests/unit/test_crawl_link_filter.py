"""Links that never reach the frontier."""

from __future__ import annotations

import pytest

from focuscrawl.crawl.link_filter import MAX_URL, may_be_page


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("http://a.example/", True),
        ("http://a.zip/", True),  # a host, not a file
        ("http://a.example/paper.pdf", False),
        ("http://a.example/PAPER.PDF", False),
        ("http://a.example/data.tar.gz", False),
        ("http://a.example/font.woff2", False),
        ("http://a.example/page.html", True),
        ("http://a.example/show.pdf?as=html", True),
        ("http://a.example/show?file=/a.pdf", True),  # a program that shows it
        ("http://a.example/pdf", True),
        ("http://a.example/v1.2", True),
    ],
)
def test_endings(url: str, page: bool) -> None:
    assert may_be_page(url) is page


def test_endless_urls() -> None:
    stem = "http://a.example/"
    assert may_be_page(stem + "a" * (MAX_URL - len(stem)))
    assert not may_be_page(stem + "a" * (MAX_URL - len(stem) + 1))
