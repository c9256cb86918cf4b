"""Links that never reach the frontier."""

from __future__ import annotations

import pytest

from focuscrawl.crawl.scope import can_be_page, select_links
from focuscrawl.foundation.urls import MAX_URL_LENGTH
from focuscrawl.page import parse_page


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
        # names of pages that end like files
        ("http://a.example/wiki/Node.js", True),
        ("http://a.example/package/chart.js", True),
        ("http://a.example/people/john.doc", True),
        ("http://a.example/wiki/ASP.NET", True),
        ("http://a.example/sites/example.zip", True),
        ("http://a.example/package/normalize.css", True),
        ("http://a.example/@ada/Chart.JS", True),
        ("http://a.example/wiki/.gz", True),
        ("http://a.example/wiki/File:Cat.jpg", True),
        ("http://a.example/index.php/Datei%3ACat.svg", True),
        # files
        ("http://a.example/static/chart.js", False),
        ("http://a.example/wp-content/themes/a/style.css", False),
        ("http://a.example/Files/2020/report.doc", False),
        ("http://a.example/downloads/setup.zip", False),
        ("http://a.example:8080/cat.jpg", False),
        ("http://a.example/wiki/cat.jpg", False),
    ],
)
def test_endings(url: str, page: bool) -> None:
    assert can_be_page(url) is page


def test_endless_urls() -> None:
    stem = "http://a.example/"
    assert can_be_page(stem + "a" * (MAX_URL_LENGTH - len(stem)))
    assert not can_be_page(stem + "a" * (MAX_URL_LENGTH - len(stem) + 1))


@pytest.mark.parametrize(
    ("head", "any_media", "obey_robots", "places"),
    [
        ("", False, False, [0, 3]),
        ("", True, False, [0, 2, 3]),
        ("", True, True, [0, 2]),
        ("<meta name=robots content=nofollow>", True, False, [0, 2, 3]),
        ("<meta name=robots content=nofollow>", True, True, []),
        ("<meta name=robots content=noindex>", False, True, [0]),
    ],
)
def test_links_that_are_followed(
    head: str, any_media: bool, obey_robots: bool, places: list[int]
) -> None:
    anchors = "<a href=/a>a<a href=/out>b<a href=/c.pdf>c<a rel=nofollow href=/d>d"
    view = parse_page(f"{head}{anchors}".encode(), "http://a.example/")
    urls = [None if url.endswith("out") else url for url in view.links.urls]
    found = select_links(view, urls, any_media=any_media, obey_robots=obey_robots)
    assert found == {place: urls[place] for place in places}
