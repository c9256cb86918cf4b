"""Redirects that lead in a circle, or on and on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from focuscrawl.crawl.state import MOST, refresh_target
from focuscrawl.page import parse_page

from .shelves import Shelf, at, open_crawl, run

if TYPE_CHECKING:
    from pathlib import Path


def _chain(length: int) -> Shelf:
    web = Shelf()
    for number in range(length):
        web.put(f"h{number % 3}/{number}", "", 302, location=f"h{(number + 1) % 3}/{number + 1}")
    web.page(f"h{length % 3}/{length}", "jazz")
    return web


def test_a_chain_as_long_as_browsers_follow_is_followed(tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, _chain(MOST - 1), "h0/0")
    visits = run(crawl)
    crawl.close("frontier_empty")
    assert [visit.status for visit in visits] == [302] * (MOST - 1) + [200]
    assert not any(visit.error for visit in visits)


@pytest.mark.parametrize("stop", [0, 7, MOST - 1])
def test_a_longer_one_is_not_also_when_it_is_resumed(tmp_path: Path, stop: int) -> None:
    web = _chain(50)
    errors = []
    for fetches in (stop, 1000):
        crawl = open_crawl(tmp_path, web, "h0/0")
        errors += [visit.error for visit in run(crawl, fetches)]
        crawl.close("interrupted")
    assert errors == [None] * (MOST - 1) + [f"redirects without end: {MOST} in a row"]


def test_what_is_found_at_the_end_of_a_chain_begins_anew(tmp_path: Path) -> None:
    web = Shelf()
    for start in ("/a", "/b"):
        for number in range(15):
            web.put(f"{start}{number}", "", 301, location=f"{start}{number + 1}")
    web.page("/a15", "jazz", "/b0")
    web.page("/b15", "jazz")
    crawl = open_crawl(tmp_path, web, "/a0")
    visits = run(crawl)
    crawl.close("frontier_empty")
    assert visits[-1].url == at("/b15")
    assert not any(visit.error for visit in visits)


def test_a_circle_is_told_from_two_ways_to_one_redirect(tmp_path: Path) -> None:
    web = Shelf()
    web.put("/one", "", 301, location="/two")
    web.put("/two", "", 301, location="/one")
    web.put("/left", "", 301, location="/middle")
    web.put("/right", "", 301, location="/middle")
    web.put("/middle", "", 301, location="/end")
    web.page("/end", "jazz")
    crawl = open_crawl(tmp_path, web, "/one", "/left", "/right")
    errors = {visit.url: visit.error for visit in run(crawl) if visit.error}
    crawl.close("frontier_empty")
    assert errors == {at("/two"): f"redirect loop: back to {at('/one')}"}


def _refreshing(target: str, delay: int = 0) -> str:
    return f'<meta http-equiv="refresh" content="{delay}; url={target}">'


@pytest.mark.parametrize(
    ("head", "longest", "target"),
    [
        (_refreshing("/b"), 10.0, at("/b")),
        (_refreshing("/b", 9), 10.0, at("/b")),
        (_refreshing("/b", 10), 10.0, None),
        (_refreshing("/b"), 0.0, None),
        (_refreshing("/#top"), 10.0, None),  # itself
        (_refreshing("javascript:x"), 10.0, None),
        ("", 10.0, None),
    ],
)
def test_where_a_refresh_leads(head: str, longest: float, target: str | None) -> None:
    assert refresh_target(parse_page(head.encode(), at("/")), longest) == target


def test_no_page_refreshes() -> None:
    assert refresh_target(None, 10.0) is None


@pytest.mark.parametrize("stop", [0, 7, MOST - 1])
def test_refreshes_without_end_come_to_one_also_when_resumed(tmp_path: Path, stop: int) -> None:
    web = Shelf()
    for number in range(50):
        web.page(f"/{number}", "jazz", "/aside", head=_refreshing(f"/{number + 1}"))
    errors = []
    for fetches in (stop, 1000):
        crawl = open_crawl(tmp_path, web, "/0", meta_refresh=5.0)
        errors += [visit.error for visit in run(crawl, fetches)]
        crawl.close("interrupted")
    moved = [f"meta refresh: {at(f'/{number + 1}')}" for number in range(MOST - 1)]
    assert errors == [*moved, f"redirects without end: {MOST} in a row"]


def test_two_pages_that_refresh_to_each_other(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/one", "jazz", head=_refreshing("/two"))
    web.page("/two", "jazz", head=_refreshing("/one"))
    crawl = open_crawl(tmp_path, web, "/one", meta_refresh=5.0)
    visits = run(crawl)
    crawl.close("frontier_empty")
    assert [visit.relevance for visit in visits] == [0.0, 0.0]
    assert visits[1].error == f"redirect loop: back to {at('/one')}"


def test_where_nobody_asked_for_it_a_refresh_is_no_redirect(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/one", "jazz", head=_refreshing("/two"))
    web.page("/two", "jazz")
    crawl = open_crawl(tmp_path, web, "/one")
    visits = run(crawl)
    crawl.close("frontier_empty")
    assert [visit.relevance for visit in visits] == [0.9]
