"""Pages that are too much to be read as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.page import parse_page
from focuscrawl.page.parse import MAX_LINKS, MAX_SIZE, MAX_TOKENS

from .shelves import Shelf, open_crawl, run

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://a.example/"


def test_of_a_page_without_end_the_beginning_is_read() -> None:
    body = b"<title>Long</title><p>first " + "Straße ".encode() * (MAX_SIZE // 8) + b" last"
    page = parse_page(body, URL)
    assert page.title == "Long"
    assert page.tokens[:3] == ["long", "first", "straße"]
    assert "last" not in page.tokens
    assert set(page.tokens[2:]) == {"straße"}
    assert len(page.tokens) == len(page.token_leaf) == MAX_TOKENS


def test_no_character_is_cut_in_two() -> None:
    page = parse_page(b"<p>" + "Straße ".encode() * 9 + "ß".encode() * MAX_SIZE, URL)
    assert page.tokens == ["straße"] * 9  # and one word too long for a token


def test_links_beyond_the_limit_are_counted_only() -> None:
    anchors = "".join(f"<a href={n}><img alt=pic{n}></a>" for n in range(MAX_LINKS + 7))
    page = parse_page(anchors.encode(), URL)
    assert (len(page.links), page.links_cut) == (MAX_LINKS, 7)
    assert page.links.anchors[-1] == f"pic{MAX_LINKS - 1}"
    assert len(page.links.left) == len(page.links.nofollow) == MAX_LINKS


def test_the_crawl_says_how_many_links_it_dropped(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz", *["/one"] * (MAX_LINKS + 7))
    crawl = open_crawl(tmp_path, web, "/")
    (visit,) = run(crawl)
    crawl.close("frontier_empty")
    assert (visit.links, visit.dropped) == (MAX_LINKS + 7, MAX_LINKS + 7)


def test_what_follows_the_end_of_the_document_is_part_of_it() -> None:
    body = b"<html><body><p>before</body></html><p>after <a href=/x>link</a></html>more"
    page = parse_page(body, URL)
    assert page.tokens == ["before", "after", "link", "more"]
    assert page.links.urls == ["http://a.example/x"]
