"""What a crawl is confined to: hosts, parts of URLs, languages, clicks from a seed."""

# ruff: noqa: RUF001 - letters of other scripts

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from focuscrawl.crawl import CrawlConfig
from focuscrawl.crawl import open_crawl as open_plan
from focuscrawl.crawl.scope import OTHER_LANGUAGE, Scope
from focuscrawl.engine.config_from_settings import read_config
from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import HostSet, UrlPatterns
from focuscrawl.page import parse_page
from focuscrawl.page.metadata import LanguageFilter
from focuscrawl.store.history import History

from .shelves import Shelf, at, crawled, open_crawl, run, urls

ENGLISH = "jazz is the music that we play in the old house by the river every night " * 3
GERMAN = "jazz ist die musik die wir jeden abend in dem alten haus am fluss spielen " * 3


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("a.example", True),
        ("www.a.example", True),
        ("a.example:8080", True),
        ("a.example.", True),
        ("ba.example", False),
        ("example", False),
        ("b.example", False),
        ("b.example:81", True),
        ("deep.b.example:81", True),
        ("b.example:82", False),
        ("[::1]", True),
        ("[::1]:80", True),
        ("xn--mnchen-3ya.example", True),
    ],
)
def test_a_host_and_what_is_below_it(name: str, there: bool) -> None:
    given = "A.example, b.example:81,[::1],m\u00fcnchen.example"
    assert HostSet(read_config(Settings(), {"hosts": given}).hosts).has(name) is there


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("/login", True),
        ("/Login", False),
        ("a.example/*/login", True),
        ("a.example/*/x*login", True),
        (".html$", True),
        ("login$", False),
        ("x/login.html*.html$", False),  # no part of a URL counts for two
        ("login*$", True),
        ("/gr\u00fcn", True),
    ],
)
def test_parts_of_urls(pattern: str, found: bool) -> None:
    patterns = read_config(Settings(), {"deny": pattern}).deny
    url = "http://a.example/gr%C3%BCn/x/login.html"
    assert UrlPatterns(patterns).match(url) is found


def test_a_url_made_for_it_takes_no_longer() -> None:
    """An expression that goes back and forth would take for ever."""
    patterns = UrlPatterns(["a*" * 40 + "b"])
    assert not patterns.match("http://a.example/" + "a" * 2000)


def test_lists_are_files_too(tmp_path: Path) -> None:
    listed = tmp_path / "hosts.txt"
    listed.write_text("# ours\nb.example\n\n a.example \n")
    assert read_config(Settings(), {"hosts": str(listed)}).hosts == (
        "b.example",
        "a.example",
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hosts": "https://a.example/"}, "is not a host: write it as in www.example.org"),
        ({"hosts": "*.a.example"}, "is not a host"),
        ({"deny": r"/login|/out"}, "is a regular expression: write parts of URLs"),
        ({"deny": "/print/.*"}, "is a regular expression"),
        ({"deny": "*"}, "matches every URL"),
        ({"deny": "lists/nowhere.txt"}, r"there is no file lists/nowhere.txt"),
        ({"hosts": "nowhere.csv"}, "there is no file nowhere.csv"),
        ({"languages": "english"}, "languages must be language codes"),
        ({"max_depth": "-1"}, "max_depth must be a whole number"),
    ],
)
def test_slips_are_one_line(given: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_config(Settings(), given)


def test_a_part_of_urls_may_be_called_like_a_file() -> None:
    assert read_config(Settings(), {"deny": "*robots.txt"}).deny == ("*robots.txt",)
    assert read_config(Settings(), {"deny": ".txt"}).deny == (".txt",)


def test_a_list_of_nothing_is_no_list(tmp_path: Path) -> None:
    path = tmp_path / "hosts.txt"
    path.write_text("# none yet\n\n", encoding="utf-8")
    for name in ("hosts", "deny", "languages"):
        with pytest.raises(UserError, match=r"hosts.txt has no entries"):
            read_config(Settings(), {name: str(path)})


def test_a_language_that_nobody_can_tell_is_one_line() -> None:
    with pytest.raises(UserError, match="languages: xq cannot be detected"):
        Scope(CrawlConfig(topic="/A", languages=("xq",)))


@pytest.mark.parametrize(
    ("body", "other"),
    [
        (f"<html lang=en>{GERMAN}", "de"),  # as templates say
        (f"<html lang=de>{ENGLISH}", None),
        ("<html lang=de-AT>Jazz", "de"),
        ("<html lang=en-GB>Jazz", None),
        ("<html>Jazz", None),  # nobody knows
        ("<html xml:lang=de-AT>Jazz", "de"),
        ("<html lang='' xml:lang=fr>Jazz", "fr"),
        ("<html lang=en xml:lang=de>Jazz", None),
        ("<html lang=en>自行车是一种由人力驱动的交通工具，通常有两个轮子。", "zh"),
        ("<html lang=en>自転車は人間の力で動く乗り物です。車輪がある。", "ja"),
        ("<html lang=en>การปั่นจักรยานเป็นกิจกรรมที่ดีต่อสุขภาพ", "th"),
        ("<html lang=en>自行车", None),  # too few
    ],
)
def test_words_tell_the_language_where_there_are_enough(body: str, other: str | None) -> None:
    view = parse_page(body.encode(), "http://a.example/")
    assert LanguageFilter(["en"]).excluded_language(view) == other


@pytest.fixture
def web() -> Shelf:
    """A chain of pages, and some that are on another host, denied, or in German."""
    shelf = Shelf()
    shelf.page("/", "start jazz", "/near", "b/", "/log/in", "/moved", "/german")
    shelf.page("/near", "jazz", "/far")
    shelf.page("/far", "jazz", "/farther")
    shelf.page("/farther", "jazz")
    shelf.page("b/", "jazz")
    shelf.page("/log/in", "jazz")
    shelf.put("/moved", "", 301, location="b/")
    shelf.page("/german", GERMAN, "/english")
    shelf.page("/english", ENGLISH)
    return shelf


def test_a_crawl_stays_within_its_hosts_and_out_of_what_is_denied(
    web: Shelf, tmp_path: Path
) -> None:
    found = urls(crawled(tmp_path, web, "/", hosts=("a.example",), deny=("/log*",)).visits)
    left_out = {at("b/"), at("/log/in")}
    assert set(found) == {*web.urls()} - left_out
    assert at("/moved") in found  # and where it leads is left out


def test_pages_as_far_as_max_depth_are_fetched(web: Shelf, tmp_path: Path) -> None:
    visits = crawled(tmp_path, web, "/", max_depth=2).visits
    assert max(visit.depth for visit in visits) == 2
    assert at("/far") in urls(visits)
    assert at("/farther") not in urls(visits)


def test_a_page_in_another_language_is_not_relevant_and_may_lead_to_one_that_is(
    web: Shelf, tmp_path: Path
) -> None:
    crawl = open_crawl(tmp_path, web, "/", languages=("en",))
    relevance = {visit.url: visit.relevance for visit in run(crawl)}
    crawl.flush()
    events = History(crawl.store).events(OTHER_LANGUAGE)
    crawl.close("frontier_empty")
    assert relevance[at("/german")] == 0.0
    assert relevance[at("/english")] == 0.9
    assert [event.detail for event in events] == [f"{at('/german')}: de"]


SEED = "https://zenith-55.demo.example/notes/23.html"


def demo(folder: Path, seeds: str, **scope: Any) -> None:
    """Open a crawl of the demo web, and close it."""
    plan = CrawlConfig(
        topic="/Sports/Cycling",
        web="demo",
        strategy="best-first",
        seeds=seeds,
        crawl_dir=str(folder / "crawl"),
        **scope,
    )
    open_plan(plan).close("interrupted")


def test_another_scope_is_another_crawl(tmp_path: Path) -> None:
    demo(tmp_path, "models/demo/seeds.csv", hosts=("demo.example",))
    demo(tmp_path, "models/demo/seeds.csv", hosts=("demo.example",))
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "its hosts is demo.example, not none"),
        ({"hosts": ("demo.example",), "max_depth": 3}, "its max_depth is none, not 3"),
    ]
    for another, what in cases:
        with pytest.raises(UserError, match=what):
            demo(tmp_path, "models/demo/seeds.csv", **another)


def test_seeds_outside_are_left_out_and_none_at_all_is_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seeds = f"{SEED},https://exploit-20.demo.example/people/112.html"
    demo(tmp_path, seeds, deny=("exploit-20.",))
    assert "1 of 2 start pages are skipped" in caplog.text
    with pytest.raises(UserError, match="none of the 2 start pages is in the scope"):
        demo(tmp_path, seeds, hosts=("else.example",))


def test_seeds_that_a_recording_has_not_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    absent = [f"https://nowhere.example/{at}" for at in range(5)]
    demo(tmp_path, ",".join([*absent[:3], SEED, *absent[3:]]))
    assert "5 of 6 start pages are skipped" in caplog.text
    assert ", ".join(absent[:3]) in caplog.text
    assert absent[3] not in caplog.text
