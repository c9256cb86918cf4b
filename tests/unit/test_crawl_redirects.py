"""Redirects that lead in a circle, or on and on."""

from __future__ import annotations

from pathlib import Path

import pytest

from focuscrawl.crawl.state import MAX_REDIRECTS, refresh_target
from focuscrawl.crawl.visit import Download, Fetch, PageVisit
from focuscrawl.page import parse_page
from focuscrawl.page.metadata import read_header_links

from .shelves import Shelf, at, crawled

FRONT = Fetch(0, at("/"), "a.example", 0, None, None)
WITHOUT_END = f"too many redirects: {MAX_REDIRECTS} in a row"


def _chain(length: int) -> Shelf:
    web = Shelf()
    for number in range(length):
        web.put(f"h{number % 3}/{number}", "", 302, location=f"h{(number + 1) % 3}/{number + 1}")
    web.page(f"h{length % 3}/{length}", "jazz")
    return web


def _refreshing(target: str, delay: int = 0) -> str:
    return f'<meta http-equiv="refresh" content="{delay}; url={target}">'


def test_a_chain_as_long_as_browsers_follow_is_followed(tmp_path: Path) -> None:
    visits = crawled(tmp_path, _chain(MAX_REDIRECTS - 1), "h0/0").visits
    assert [visit.status for visit in visits] == [302] * (MAX_REDIRECTS - 1) + [200]
    assert not any(visit.error for visit in visits)


@pytest.mark.parametrize("stop", [0, 7, MAX_REDIRECTS - 1])
@pytest.mark.parametrize("refreshes", [False, True])
def test_a_longer_one_is_not_also_when_it_is_resumed(
    tmp_path: Path, stop: int, refreshes: bool
) -> None:
    web, seed = _chain(50), "h0/0"
    moved: list[str | None] = [None] * (MAX_REDIRECTS - 1)
    if refreshes:
        seed, moved = "/0", [f"meta refresh: {at(f'/{n + 1}')}" for n in range(MAX_REDIRECTS - 1)]
        for number in range(50):
            web.page(f"/{number}", "jazz", "/aside", head=_refreshing(f"/{number + 1}"))
    runs = [crawled(tmp_path, web, seed, fetches=n, meta_refresh=5.0) for n in (stop, 1000)]
    assert [visit.error for each in runs for visit in each.visits] == [*moved, WITHOUT_END]


def test_what_is_found_at_the_end_of_a_chain_begins_anew(tmp_path: Path) -> None:
    web = Shelf()
    for start in ("/a", "/b"):
        for number in range(15):
            web.put(f"{start}{number}", "", 301, location=f"{start}{number + 1}")
    web.page("/a15", "jazz", "/b0")
    web.page("/b15", "jazz")
    visits = crawled(tmp_path, web, "/a0").visits
    assert visits[-1].url == at("/b15")
    assert not any(visit.error for visit in visits)


def test_a_circle_is_told_from_two_ways_to_one_redirect(tmp_path: Path) -> None:
    web = Shelf()
    ways = {"/one": "/two", "/two": "/one", "/left": "/middle", "/right": "/middle"}
    for source, target in {**ways, "/middle": "/end", "/self": "/self"}.items():
        web.put(source, "", 301, location=target)
    web.put("/nowhere", "", 301)
    web.page("/end", "jazz")
    visits = crawled(tmp_path, web, "/one", "/left", "/right", "/self", "/nowhere").visits
    assert {visit.url: visit.error for visit in visits if visit.error} == {
        at("/two"): f"redirect loop: back to {at('/one')}",
        at("/self"): f"redirect loop: back to {at('/self')}",
        at("/nowhere"): "redirect without target",
    }


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
    visit = PageVisit(FRONT, None, Download(200))
    visit.view = parse_page(head.encode(), at("/"))
    assert refresh_target(visit, longest) == target


@pytest.mark.parametrize(
    ("status", "field", "head", "target"),
    [
        (200, "0; url=/b", "", at("/b")),
        (200, "3;URL='/b'", "", at("/b")),
        (200, "0; url=/b", _refreshing("/c"), at("/b")),
        (200, "10; url=/b", "", None),
        (200, "0; url=/caf\xe9", "", at("/caf%E9")),
        (200, "0; url=/", "", None),  # itself
        (200, "5", "", None),
        (200, "5", _refreshing("/c"), at("/c")),
        (404, "0; url=/b", "", None),
    ],
)
def test_where_a_refresh_in_a_header_field_leads(
    status: int, field: str, head: str, target: str | None
) -> None:
    links = read_header_links(at("/"), [("refresh", field)])
    visit = PageVisit(FRONT, None, Download(status, header_links=links))
    visit.view = parse_page(head.encode(), at("/")) if status == 200 else None
    assert refresh_target(visit, 10.0) == target


def test_an_answer_that_is_no_page_may_refresh(tmp_path: Path) -> None:
    web = Shelf()
    web.put("/", "moved", 200, **{"content-type": "text/plain", "refresh": "0; url=/there"})
    web.page("/there", "jazz")
    first, second = crawled(tmp_path, web, "/", meta_refresh=10.0).visits
    assert (first.error, second.url) == (f"meta refresh: {at('/there')}", at("/there"))


@pytest.mark.parametrize("longest", [5.0, 0.0])
def test_pages_that_refresh_to_each_other_are_redirects_if_that_is_wanted(
    tmp_path: Path, longest: float
) -> None:
    web = Shelf()
    web.page("/one", "jazz", head=_refreshing("/two"))
    web.page("/two", "jazz", head=_refreshing("/one"))
    visits = crawled(tmp_path, web, "/one", meta_refresh=longest).visits
    assert [visit.relevance for visit in visits] == ([0.0, 0.0] if longest else [0.9, 0.9])
    if longest:
        assert visits[1].error == f"redirect loop: back to {at('/one')}"
