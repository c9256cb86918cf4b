"""Pages that come twice, under the same URL or another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .shelves import Shelf, at, crawled, states

if TYPE_CHECKING:
    from pathlib import Path


def test_the_same_content_under_another_url_is_a_duplicate(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz", at("/copy"), at("b/copy"))
    web.page("/copy", "jazz jazz", "/below")
    web.page("b/copy", "jazz jazz", "/below")
    web.page("/below", "jazz")
    visits = {visit.url: visit for visit in crawled(tmp_path, web, "/").visits}
    assert visits[at("b/copy")].duplicate_of == at("/copy")
    assert visits[at("b/copy")].relevance == 0.0
    assert visits[at("/below")].referrer == at("/copy")


def test_aliases_are_struck_out_or_recorded_as_duplicates(tmp_path: Path) -> None:
    canonical = f'<link rel="canonical" href="{at("/true")}">'
    web = Shelf()
    web.page("/", "jazz", "/alias", "/true", "/late")
    web.page("/alias", "jazz alias", "/below", head=canonical)
    web.page("/true", "jazz true", head=canonical)
    web.page("/late", "jazz late", "/below", head=canonical)
    web.page("/below", "jazz below", "/true")
    crawl, fetched = crawled(tmp_path, web, "/")
    visits = {visit.url: visit for visit in fetched}
    assert visits[at("/alias")].relevance == 0.9
    assert visits[at("/late")].duplicate_of == at("/alias")
    assert at("/true") not in visits
    assert states(crawl) == {at("/true"): "excluded"}


def test_canonical_urls_of_other_hosts_are_not_believed(tmp_path: Path) -> None:
    web = Shelf()
    head = f'<link rel="canonical" href="{at("victim/")}">'
    web.page("/", "jazz", at("victim/"), head=head)
    web.page("victim/", "jazz victim")
    visits = crawled(tmp_path, web, "/").visits
    assert [visit.duplicate_of for visit in visits] == [None, None]
