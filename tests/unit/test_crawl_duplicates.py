"""Duplicates: pages with the same bytes, and pages with the same text by a canonical link."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.crawl.duplicates import text_signature
from focuscrawl.crawl.rejudging import Rejudging
from focuscrawl.lab.judged_web import judge_web
from focuscrawl.page.metadata import LanguageFilter
from focuscrawl.page.words import PageWords
from focuscrawl.store import CrawlStore
from focuscrawl.strategies import StrategyContext, make_strategy

from .shelves import Shelf, WordCritic, at, crawled, open_crawl, run, states, urls

if TYPE_CHECKING:
    from focuscrawl.crawl import Visit


def canonical(path: str) -> str:
    return f'<link rel="canonical" href="{path}">'


def prose(seed: int, n: int = 200) -> str:
    """Return words that no other seed has."""
    return "jazz " + " ".join(f"w{seed}x{i}" for i in range(n))


def originals(visits: list[Visit]) -> dict[str, str | None]:
    return {visit.url: visit.duplicate_of for visit in visits}


def crawl(folder: Path, web: Shelf, *seeds: str) -> dict[str, str | None]:
    """Return the original of each fetched page, None for a page that is no duplicate."""
    return originals(crawled(folder, web, *(seeds or "/")).visits)


def test_the_same_content_under_another_url_is_a_duplicate(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz", at("/copy"), at("b/copy"))
    web.page("/copy", "jazz jazz", at("/below"))
    web.page("b/copy", "jazz jazz", at("/below"))
    web.page("/below", "jazz")
    visits = {visit.url: visit for visit in crawled(tmp_path, web, "/").visits}
    assert visits[at("b/copy")].duplicate_of == at("/copy")
    assert visits[at("b/copy")].relevance == 0.0
    assert (visits[at("b/copy")].links, visits[at("b/copy")].dropped) == (1, 1)
    assert visits[at("/below")].referrer == at("/copy")


# -- canonical links ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_words", [5, 200])
@pytest.mark.parametrize("first", ["/list", "/list?page=3"])
def test_pages_of_a_list_that_name_its_first_page_are_pages(
    tmp_path: Path, n_words: int, first: str
) -> None:
    web, pages = Shelf(), ["/list", *(f"/list?page={n}" for n in range(2, 30))]
    for n, page in enumerate(pages):
        around = pages[max(n - 1, 0) : n + 2]
        web.page(page, prose(n, n_words), *around, f"/item{n}", head=canonical("/list"))
        web.page(f"/item{n}", f"jazz {n}")
    found = crawl(tmp_path, web, first)
    assert found.keys() == {at(page) for page in pages} | {at(f"/item{n}") for n in range(29)}
    assert {*found.values()} == {None}


def test_a_template_that_names_the_front_page_everywhere_loses_no_page(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", prose(0), *(f"/{n}" for n in range(1, 15)), head=canonical("/"))
    for n in range(1, 15):
        web.page(f"/{n}", prose(n), f"/below{n}", head=canonical("/"))
        web.page(f"/below{n}", prose(100 + n), head=canonical("/"))
    found = crawl(tmp_path, web)
    assert len(found) == 29
    assert {*found.values()} == {None}


@pytest.mark.parametrize(
    "answer", [{"status": 404}, {"status": 301, "location": "/a"}, {"status": 500}]
)
def test_a_canonical_url_without_a_page_loses_no_page(
    tmp_path: Path, answer: dict[str, str]
) -> None:
    web = Shelf()
    web.page("/", "jazz", "/a", "/b", "/c")
    for n, name in enumerate("abc"):
        web.page(f"/{name}", prose(n), f"/below-{name}", head=canonical("/gone"))
        web.page(f"/below-{name}", f"jazz {name}")
    web.put("/gone", "", **answer)  # type: ignore[arg-type]
    found = crawl(tmp_path, web)
    assert {at(path) for path in ("/gone", "/below-a", "/below-b", "/below-c")} <= found.keys()
    assert {*found.values()} == {None}


def test_a_canonical_url_to_which_nothing_else_links_is_fetched(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/part?page=2", prose(2), head=canonical("/part"))
    web.page("/part", prose(1), "/other", head=canonical("/part"))
    web.page("/other", prose(3), head=canonical(at("b/")))
    web.page("b/", prose(4))
    found = crawl(tmp_path, web, "/part?page=2")
    assert found == dict.fromkeys(map(at, ("/part?page=2", "/part", "/other", "b/")))


@pytest.mark.parametrize(
    "order",
    [
        ("/true", "/true?print=1", "/true?sid=2"),
        ("/true?sid=2", "/true", "/true?print=1"),
        ("/true?print=1", "/true?sid=2", "/true"),
    ],
)
@pytest.mark.parametrize("n_words", [5, 400])
def test_copies_with_a_canonical_link_are_duplicates(
    tmp_path: Path, order: tuple[str, ...], n_words: int
) -> None:
    web = Shelf()
    web.page("/", "jazz", *order)
    for n, url in enumerate(("/true", "/true?print=1", "/true?sid=2")):
        text = prose(0, n_words) + (f" printed {n}" if n_words > 100 else "")
        web.put(url, f"{canonical('/true')}<body class=v{n}>{text} <a href=/below{n}>b</a>")
        web.page(f"/below{n}", "jazz")
    found = crawl(tmp_path, web)
    first, *others = (at(url) for url in order)
    assert [found[url] for url in (first, *others)] == [None, first, first]
    below = [url for url in found if "below" in url]
    assert len(below) == 1  # the links of duplicates are not followed


def test_copies_of_several_pages_that_name_one_url_are_found(tmp_path: Path) -> None:
    web = Shelf()
    copies = [f"/list?page={n}&sid={sid}" for sid in "ab" for n in range(5)]
    web.page("/", "jazz", *copies)
    for url in copies:
        n, sid = int(url[11]), url[-1]
        web.put(url, f"{canonical('/list')}<body class={sid}>{prose(n)}")
    found = crawl(tmp_path, web)
    twins = {at(url): at(url[:-1] + "a") if url[-1] == "b" else None for url in copies}
    assert {url: of for url, of in found.items() if "sid" in url} == twins


def test_the_page_of_a_url_is_known_however_many_pages_name_the_url(tmp_path: Path) -> None:
    web = Shelf()
    names = [f"/list?page={n}" for n in range(40)]
    web.page("/", "jazz", *names, "/list", "/list?print=1")
    for n, name in enumerate(names):
        web.page(name, prose(n), head=canonical("/list"))
    for n, name in enumerate(("/list", "/list?print=1")):
        web.put(name, f"{canonical('/list')}<body class=v{n}>{prose(99)}")
    found = crawl(tmp_path, web)
    assert found.pop(at("/list?print=1")) == at("/list")
    assert {*found.values()} == {None}


def test_pages_without_words_are_not_known_to_be_the_same(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz", "/1", "/2")
    for n in (1, 2):
        web.put(f"/{n}", f"{canonical('/1')}<body class=v{n}><a href=/below{n}></a>")
        web.page(f"/below{n}", f"jazz {n}")
    assert {at("/below1"), at("/below2")} <= crawl(tmp_path, web).keys()


def test_canonical_urls_of_other_hosts_are_not_believed(tmp_path: Path) -> None:
    web = Shelf()
    head = f'<link rel="canonical" href="{at("victim/")}">'
    web.page("/", "jazz", at("victim/"), head=head)
    web.page("victim/", f"jazz link {at('victim/')}")
    visits = crawled(tmp_path, web, "/").visits
    assert [visit.duplicate_of for visit in visits] == [None, None]


def test_the_signature_of_a_text_depends_on_its_words_only() -> None:
    few, many = ["red", "tea"], [f"word{n}" for n in range(100)]
    assert text_signature(PageWords([])) == b""
    assert text_signature(PageWords(few)) == text_signature(PageWords([*few]))
    assert text_signature(PageWords(few)) != text_signature(PageWords(few[::-1]))
    assert len(text_signature(PageWords(many))) > len(text_signature(PageWords(few))) > 0


# -- the same bytes in another place -----------------------------------------------------------


def folders(*places: str) -> Shelf:
    """Return a web with the same two levels of pages in several folders."""
    web = Shelf()
    web.page("/", "jazz", *map(at, places))
    for n, place in enumerate(places):
        web.page(place, "jazz index", "list.html", at("/shared"))
        web.page(f"{place}list.html", "jazz list", "item.html", "/root.html", "?sorted")
        web.page(f"{place}item.html", f"jazz item {n}", "more.html")
        web.page(f"{place}more.html", f"jazz more {n}")
    web.page("/shared", "jazz shared")
    return web


@pytest.mark.parametrize("places", [("/x/", "/y/", "/y/z/"), ("b/", "c/", "d/e/")])
def test_links_of_the_same_bytes_that_lead_elsewhere_are_followed(
    tmp_path: Path, places: tuple[str, ...]
) -> None:
    found = crawled(tmp_path, folders(*places), "/")
    visits = {visit.url: visit for visit in found.visits}
    first, *others = places
    for place in others:
        for name in ("", "list.html"):
            copy = visits[at(place + name)]
            assert copy.duplicate_of == at(first + name)
            assert copy.relevance == 0.0
            assert copy.dropped == copy.links - 1
        assert visits[at(f"{place}more.html")].relevance == 0.9
    rows = found.crawl.store.rows("SELECT count(*) FROM links WHERE target = ?", (at("/shared"),))
    assert [*map(tuple, rows)] == [(1,)]  # the first page has this link


def test_a_base_element_makes_all_links_the_same(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz", "/x/", "/y/")
    for folder in ("/x/", "/y/"):
        web.page(folder, "jazz index", "item.html", head="<base href='/x/'>")
        web.page(f"{folder}item.html", f"jazz {folder}")
    found = crawl(tmp_path, web)
    assert found[at("/y/")] == at("/x/")
    assert at("/y/item.html") not in found


def test_a_copy_that_names_its_original_says_nothing_new(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz", "/x/", "/X/")
    for folder in ("/x/", "/X/"):
        web.page(folder, "jazz index", "item.html", head=canonical("/x/"))
        web.page(f"{folder}item.html", "jazz item")
    assert at("/X/item.html") not in crawl(tmp_path, web)


def test_pages_that_lead_to_themselves_end(tmp_path: Path) -> None:
    web = Shelf()
    answers = {"": ("a/", "b/"), "a": ("a/", "b/", "../c"), "b": ("a/", "b/")}
    paths = [""]
    for _ in range(6):
        paths += [f"{path}{name}/" for path in paths for name in "ab"]
    for path in dict.fromkeys(paths):
        name = path.rstrip("/")[-1:]
        web.page(f"/{path}", f"jazz {name}", *answers[name])
        web.page(f"/{path}c", "jazz c")
    crawl_ended, visits = crawled(tmp_path, web, "/")
    assert len(visits) < 60  # of 255
    assert states(crawl_ended) == {}


def test_every_strategy_follows_them(tmp_path: Path) -> None:
    for strategy in ("breadth-first", "best-first", "hard-focus", "apprentice"):
        web = folders("/x/", "/y/")
        visits = crawled(tmp_path / strategy, web, "/", strategy=strategy).visits
        assert at("/y/more.html") in urls(visits), strategy


# -- resumed -----------------------------------------------------------------------------------


def mixed() -> Shelf:
    """Return a web with duplicates of all kinds."""
    web = folders("/x/", "b/")
    lists = [f"/list?page={n}" for n in range(4)]
    web.page("/", "jazz", "/x/", at("b/"), *lists, "/list?page=1&print=1", "/short", "/short?sid")
    for n, page in enumerate(lists):
        web.page(page, prose(n), f"/x/item{n}", head=canonical("/list"))
    web.put("/list?page=1&print=1", f"{canonical('/list')}{prose(1)}")
    web.page("/list", prose(7), head=canonical("/list"))
    for n, page in enumerate(("/short", "/short?sid")):
        web.put(page, f"{canonical('/short')}<body class=v{n}>jazz short")
    return web


@pytest.mark.parametrize("near_duplicates", [True, False])
def test_a_resumed_crawl_finds_the_same_duplicates(tmp_path: Path, near_duplicates: bool) -> None:
    web, given = mixed(), dict[str, Any](near_duplicates=near_duplicates)
    whole = crawled(tmp_path / "whole", web, "/", **given).visits
    expected = [(visit.url, visit.duplicate_of, visit.score) for visit in whole]
    kinds = {visit.duplicate_of for visit in whole}
    assert {at("/x/"), at("/list?page=1"), at("/short")} <= kinds
    for moment in range(1, len(expected)):
        folder = tmp_path / str(moment)
        first = open_crawl(folder, web, "/", **given)
        visits = run(first, moment)
        first.close("killed")
        visits += crawled(folder, web, "/", **given).visits
        assert [(v.url, v.duplicate_of, v.score) for v in visits] == expected


def test_judging_again_scores_the_links_of_duplicates_too(tmp_path: Path) -> None:
    web = mixed()
    crawled(tmp_path, web, "/", strategy="best-first")
    critic = WordCritic()
    strategy = make_strategy("best-first", StrategyContext(critic, 0, web, ()), {})
    with closing(CrawlStore.open(tmp_path / "crawl.db")) as store:
        found = Rejudging(
            store, [web], critic=critic, strategy=strategy, languages=LanguageFilter()
        ).run()
        links = [*map(tuple, store.rows("SELECT id, score, model_version FROM link ORDER BY id"))]
        pages = "SELECT seq, relevance, topic FROM page WHERE digest IS NOT NULL"
        judged = [*map(tuple, store.rows(f"{pages} AND duplicate_of IS NULL"))]
        below = "SELECT sum(1) FROM link JOIN page ON page.url = source WHERE duplicate_of > 0"
        assert store.row(below)[0] >= 2
    assert (found.links, found.pages, found.unread) == (links, judged, 0)
    assert found.urls == []


def test_the_lab_finds_the_same_duplicates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    web = mixed()
    found = crawl(tmp_path / "crawl", web)
    whole = judge_web(web, WordCritic())
    pages = [whole.urls.index(url) for url in found]
    contents = {first: {i for i in pages if whole.content[i] == first} for first in whole.content}
    assert sorted(map(len, contents.values())) == sorted(
        1 + [*found.values()].count(url) for url, of in found.items() if of is None
    )
    reached = whole.reachable([whole.urls.index(at("/"))])
    assert len(reached) == [*found.values()].count(None)
    assert whole.urls.index(at("b/more.html")) in reached
