"""Pages that no page links to: in site maps and feeds, and in other languages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from focuscrawl.crawl import CrawlConfig
from focuscrawl.crawl.discovery import LISTED, MAX_FILES, Discovery
from focuscrawl.store.history import History

from .shelves import Shelf, at, crawled, open_crawl, run, urls

if TYPE_CHECKING:
    from focuscrawl.crawl import Crawl


ALL = ("sitemaps", "feeds", "hreflang")
XML = "application/xml"


def site_map(*paths: str, index: bool = False) -> str:
    outer, inner = ("sitemapindex", "sitemap") if index else ("urlset", "url")
    each = "".join(f"<{inner}><loc>{at(path)}</loc></{inner}>" for path in paths)
    return f"<{outer}>{each}</{outer}>"


@pytest.fixture
def web() -> Shelf:
    """A jazz page, a dull one that links to others, a site map and a feed."""
    shelf = Shelf()
    alternate = "<link rel=alternate type=application/rss+xml href=/feed>"
    alternate += (
        "<link rel=alternate hreflang=de href=/de><link rel=alternate hreflang=fr href=/fr>"
    )
    shelf.page("/", "start jazz", "/dull", "/jazz", head=alternate)
    shelf.page("/dull", "nothing", "/d1")
    shelf.page("/jazz", "jazz", "/j1")
    for name in ("d1", "j1", "fed", "mapped", "mapped2", "de", "fr"):
        shelf.page(f"/{name}", name)
    shelf.put("/sitemap.xml", site_map("/jazz", "/mapped", "/mapped2"), content_type=XML)
    rss = f"<rss><channel><item><title>t</title><link>{at('/fed')}</link></item></channel></rss>"
    shelf.put("/feed", rss, content_type="application/rss+xml")
    return shelf


def test_nothing_is_asked_for_that_nobody_asked_for(web: Shelf, tmp_path: Path) -> None:
    found = set(urls(crawled(tmp_path, web, "/").visits))
    assert not found & {at(f"/{name}") for name in ("sitemap.xml", "feed", "mapped", "fed", "de")}


def test_site_maps_and_feeds_are_fetches_and_lead_to_pages(web: Shelf, tmp_path: Path) -> None:
    crawl, fetched = crawled(tmp_path, web, "/", discover=ALL)
    visits = {visit.url: visit for visit in fetched}
    paths = ("mapped", "mapped2", "fed", "de", "fr")
    assert {at(f"/{name}") for name in paths} <= set(visits)
    listed = visits[at("/sitemap.xml")]
    assert (listed.error, listed.relevance, listed.title) == (
        "site map",
        0.0,
        "site map of a.example",
    )
    assert visits[at("/feed")].error == "feed"
    assert (listed.depth, listed.referrer) == (0, at("/"))
    assert visits[at("/mapped")].referrer == at("/sitemap.xml")
    assert crawl.fetched == len(visits) == len([*web.urls()])


def test_what_they_lead_to_does_not_come_before_better_links(web: Shelf, tmp_path: Path) -> None:
    """Their links are worth what pages of the host have been, those of jazz pages 0.9."""
    visits = crawled(tmp_path, web, "/", discover=("sitemaps",)).visits
    order = urls(visits)
    scores = {visit.url: visit.score for visit in visits}
    mapped = scores[at("/mapped")]
    assert mapped is not None
    assert 0.2 < mapped < 0.9
    assert order.index(at("/j1")) < order.index(at("/mapped")) < order.index(at("/d1"))


def test_a_host_without_a_relevant_page_is_asked_for_nothing(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.page("/", "dull")
    shelf.put("/sitemap.xml", site_map("/x"), content_type=XML)
    assert urls(crawled(tmp_path, shelf, "/", discover=ALL).visits) == [at("/")]


def test_robots_txt_says_where_site_maps_are(web: Shelf, tmp_path: Path) -> None:
    web.put("/maps/1.xml", site_map("/mapped"), content_type=XML)
    crawl = open_crawl(tmp_path, web, "/", discover=("sitemaps",))
    crawl.add_site_maps("http://a.example", [at("/maps/1.xml")])
    found = urls(run(crawl))
    crawl.close("frontier_empty")
    assert at("/maps/1.xml") in found
    assert at("/sitemap.xml") not in found


def test_a_start_page_may_be_a_site_map(web: Shelf, tmp_path: Path) -> None:
    assert at("/mapped2") in urls(
        crawled(tmp_path, web, "/sitemap.xml", discover=("sitemaps",)).visits
    )


@pytest.mark.parametrize(
    ("kind", "start"),
    [
        ("text/html", "<!-- <rdf:RDF xmlns:cc='x'> -->"),
        ("text/html", "<rss version='2.0'> is how a feed starts"),
        ("application/xhtml+xml", "<feed > <urlset >"),
        (None, "<!-- <rdf:RDF > --><html><script>x = '<feed >'</script>"),
        (None, "<!doctype html><p><rss >"),
    ],
)
def test_a_start_page_in_html_is_no_feed(
    kind: str | None, start: str, web: Shelf, tmp_path: Path
) -> None:
    web.put("/blog", f"{start} jazz <a href=/j1>x</a>", content_type=kind or "")
    visits = crawled(tmp_path, web, "/blog", discover=ALL).visits
    assert visits[0].error is None
    assert at("/j1") in urls(visits)


def test_a_site_map_may_be_declared_as_html(web: Shelf, tmp_path: Path) -> None:
    """Only start pages are taken for pages because of their media type."""
    web.put("/sitemap.xml", site_map("/mapped"), content_type="text/html")
    assert at("/mapped") in urls(crawled(tmp_path, web, "/", discover=ALL).visits)


@pytest.mark.parametrize("kind", ["application/x-gunzip", "text/x-xml", "x/download"])
def test_site_maps_of_unusual_media_types_are_downloaded(
    kind: str, web: Shelf, tmp_path: Path
) -> None:
    crawl = open_crawl(tmp_path, web, "/sitemap.xml", "/", discover=("sitemaps",))
    number = crawl.urls.get(at("/sitemap.xml"))
    assert number is not None
    assert crawl.can_read(number, kind)
    assert not crawl.can_read(number, "image/png")
    crawl.close("interrupted")


def test_a_site_map_in_text_leads_to_pages(web: Shelf, tmp_path: Path) -> None:
    web.put("/sitemap.xml", f"{at('/mapped')}\n{at('/mapped2')}\n", content_type="text/plain")
    found = urls(crawled(tmp_path, web, "/", discover=ALL).visits)
    assert {at("/mapped"), at("/mapped2")} <= {*found}


def test_the_languages_of_a_crawl_are_those_it_looks_for(web: Shelf, tmp_path: Path) -> None:
    found = set(
        urls(crawled(tmp_path, web, "/", discover=("hreflang",), languages=("de",)).visits)
    )
    assert at("/de") in found
    assert at("/fr") not in found


def test_other_languages_are_named_by_headers_and_site_maps_too(tmp_path: Path) -> None:
    web = Shelf()
    field = f'<{at("/de")}>; rel="alternate"; hreflang="de", </x>; rel=next, <fr>; hreflang=fr'
    web.put("/", "jazz <a href=/other>x</a>", link=f"{field}; rel=alternate")
    web.page("/mapped", "mapped")
    url = (
        f'<url><loc>{at("/mapped")}</loc><x:link rel="alternate" hreflang="de" href="/mapped-de"/>'
    )
    url += '<x:link rel="alternate" hreflang="fr" href="/mapped-fr"/></url>'
    body = f'<urlset xmlns:x="http://www.w3.org/1999/xhtml">{url}</urlset>'
    web.put("/sitemap.xml", body, content_type=XML)
    for name in ("de", "fr", "mapped-de", "mapped-fr", "other"):
        web.page(f"/{name}", name)
    found = {}
    for languages in ((), ("de",)):
        folder, wanted = tmp_path / str(len(languages)), ("sitemaps", "hreflang")
        crawl = open_crawl(folder, web, "/", discover=wanted, languages=languages)
        found[languages] = {visit.url: visit for visit in run(crawl)}
        crawl.close("frontier_empty")
    everywhere, german = found.values()
    assert {at(f"/{name}") for name in ("de", "fr", "mapped-de", "mapped-fr")} <= {*everywhere}
    assert {at("/de"), at("/mapped-de")} <= {*german}
    assert not {at("/fr"), at("/mapped-fr")} & {*german}
    of_page, of_map = (everywhere[at(f"/{name}")].score for name in ("de", "mapped-de"))
    assert of_page == 0.9
    assert of_map is not None
    assert 0.0 < of_map < 0.9  # what pages of the host have come to


def ring(web: Shelf) -> None:
    """Ten thousand indices of site maps, each of which leads to the next, over ten hosts."""
    n = 10_000
    for i in range(n):
        here, there = (f"{'abcdefghij'[k % 10]}/maps/{k}.xml" for k in (i, (i + 1) % n))
        others = [f"{'abcdefghij'[k % 10]}/maps/{k}.xml" for k in range(i, i + 30)]
        web.put(here, site_map(there, *others, index=True), content_type=XML)
    web.put("/sitemap.xml", site_map("a/maps/0.xml", index=True), content_type=XML)


def test_a_ring_of_indices_comes_to_an_end(web: Shelf, tmp_path: Path) -> None:
    ring(web)
    errors = [visit.error for visit in crawled(tmp_path, web, "/", discover=("sitemaps",)).visits]
    assert errors.count("site map index") == MAX_FILES


def test_redirects_of_a_site_map_lead_to_one(web: Shelf, tmp_path: Path) -> None:
    web.put("/sitemap.xml", "", 301, location="/real.xml")
    web.put("/real.xml", site_map("/mapped"), content_type=XML)
    found = {
        visit.url: visit.error
        for visit in crawled(tmp_path, web, "/", discover=("sitemaps",)).visits
    }
    assert found[at("/real.xml")] == "site map"
    assert at("/mapped") in found


@pytest.mark.parametrize("strategy", ["best-first", "apprentice", "breadth-first"])
def test_a_resumed_crawl_goes_on_as_it_would_have(
    strategy: str, web: Shelf, tmp_path: Path
) -> None:
    whole, visits = crawled(tmp_path / "whole", web, "/", discover=ALL, strategy=strategy)
    order = urls(visits)
    parts: list[str] = []
    for n in (1, 2, 1, 2, 100):
        folder = tmp_path / "parts"
        crawl, visits = crawled(folder, web, "/", fetches=n, discover=ALL, strategy=strategy)
        parts += urls(visits)
    assert parts == order
    assert listed(whole) == listed(crawl)


def listed(crawl: Crawl) -> list[str]:
    return [event.detail for event in History(crawl.store).events(LISTED)]


def test_only_what_is_asked_for_is_read_as_a_list(web: Shelf, tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, web, "/", discover=("hreflang",))
    run(crawl)
    number, part = crawl.urls.get(at("/jazz")), crawl.part(Discovery)
    assert number is not None
    assert part is not None
    assert not part.can_be_site_map_or_feed(number, "application/xml")
    crawl.close("frontier_empty")


def test_a_plan_says_what_it_discovers() -> None:
    assert "discover=('feeds',)" in CrawlConfig(topic="/A", discover=("feeds",)).describe()
