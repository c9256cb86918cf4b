"""Sources of start pages: SearXNG and the index of Common Crawl, behind a real HTTP server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import NO_PROGRESS
from focuscrawl.report.status import open_store
from focuscrawl.search import ask_queries, open_source
from focuscrawl.search.queries import propose_queries, read_titles
from focuscrawl.search.seed_source import settings_file

from .search_server import COLLECTION, Said, results, search_server

if TYPE_CHECKING:
    from .running import Run
    from .search_server import Asked, SearchServer

HTML = {"Content-Type": "text/html; charset=utf-8"}
CAPTCHA = b"<!doctype html><title>Just a moment</title><div class='h-captcha'></div>"
BIKES = {f"https://bikes.example/{n}": (f"Road cycling {n}", "peloton") for n in range(25)}
TEA = {"https://tea.example/": ("Tea", "a cup of tea")}


@pytest.fixture(autouse=True)
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user has no settings of sources."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchServer]:
    with search_server(BIKES | TEA) as started:
        for name in ("SEARXNG", "COMMON_CRAWL"):
            monkeypatch.setenv(f"FOCUSCRAWL_{name}_URL", started.url)
            monkeypatch.setenv(f"FOCUSCRAWL_{name}_PER_MINUTE", "60000")
        yield started


def search(spec: str, query: str, n: int = 10) -> tuple[list[str], str]:
    """Return the URLs that a source finds, and its problem."""
    with closing(open_source(spec, "survey (+https://example.org/)")) as source:
        found = source.search(query, n)
    return [each.url for each in found.candidates], found.problem


def always(said: Said) -> Callable[[Asked], Said]:
    return lambda _: said


def refused(spec: str = "searxng") -> str:
    with pytest.raises(UserError) as error:
        search(spec, "peloton")
    assert "\n" not in str(error.value)
    return str(error.value)


def test_results_are_read_page_by_page(server: SearchServer) -> None:
    urls, problem = search("searxng", "road peloton", 15)
    assert urls == [*BIKES][:15]
    assert problem == ""
    assert [each.query["pageno"] for each in server.asked] == [["1"], ["2"]]
    assert {each.path for each in server.asked} == {"/search"}
    assert server.asked[0].headers["User-Agent"] == "survey (+https://example.org/)"
    assert len(search("searxng", "road", 100)[0]) == len(BIKES)  # then there are no more


def test_what_is_no_answer_is_one_line(server: SearchServer) -> None:
    answers = {
        "answers with a captcha (200)": Said(CAPTCHA, 200, HTML),
        "answers with a captcha (403)": Said(CAPTCHA, 403, HTML),
        "a page of HTML instead of JSON: add json to search.formats": Said(b"<p>x", 200, HTML),
        "no JSON object instead of JSON": Said(b"[1, 2]"),
        "denies access (403): add json to search.formats": Said(b"", 403),
        "redirects (301): set FOCUSCRAWL_SEARXNG_URL": Said(b"", 301, {"Location": "/login"}),
        "answers 404: set FOCUSCRAWL_SEARXNG_URL": Said(b"gone", 404, HTML),
        "answers 400: bad query": Said(b'{"error": "bad \\nquery"}', 400),
        "asks to wait 86,400 s: try again later": Said(b"", 429, {"Retry-After": "86400"}),
    }
    for words, said in answers.items():
        server.answer = always(said)
        assert words in refused()
    server.answer = lambda _: Said(b"[" * 100_000)
    assert "instead of JSON" in refused()


def test_odd_results_are_left_out(server: SearchServer) -> None:
    odd = {"results": [None, 3, {"url": 7}, {"title": "no URL"}, {"url": "https://a.example/"}]}
    server.answer = lambda _: Said(json.dumps(odd).encode())
    assert search("searxng", "peloton")[0] == ["https://a.example/"]
    server.answer = lambda _: Said(b'{"results": "none"}')
    assert search("searxng", "peloton") == ([], "")


def test_engines_that_fail_are_named(server: SearchServer) -> None:
    server.answer = lambda _: results(failed=(("google", "Suspended: CAPTCHA"), ("bing", "?")))
    assert search("searxng", "peloton") == (
        [],
        "these search engines failed: google (Suspended: CAPTCHA), bing (?)",
    )


def test_a_busy_instance_is_waited_for(server: SearchServer) -> None:
    def busy_once(_: Asked) -> Said | None:
        return Said(b"", 429, {"Retry-After": "1"}) if len(server.asked) == 1 else None

    server.answer = busy_once
    start = time.monotonic()
    assert search("searxng", "peloton")[0]
    assert len(server.asked) == 2
    assert time.monotonic() - start >= 1.0


def test_answers_are_kept_and_not_asked_again(server: SearchServer, tmp_path: Path) -> None:
    def ask(queries: list[str]) -> list[str]:
        asked = ask_queries(
            "searxng",
            queries,
            ["road peloton"],
            3,
            record=tmp_path / "search.jsonl",
            agent="focuscrawl",
            progress=NO_PROGRESS,
        )
        assert all(len(answer) == 3 for answer in asked.answers)
        assert len(asked.problems) == (0 if "road peloton" in asked.queries else 1)
        return asked.queries

    def captcha_after_two(_: Asked) -> Said | None:
        return Said(CAPTCHA, 200, HTML) if len(server.asked) > 2 else None

    queries = ["road", "peloton", "cycling"]
    server.answer = captcha_after_two
    assert ask(queries) == ["road", "peloton"]
    with (tmp_path / "search.jsonl").open("a") as record:
        record.write('{"source": "searxng", "que')  # killed while it wrote
    server.answer = lambda _: None
    before = len(server.asked)
    for _ in range(2):
        assert ask(queries) == [*queries, "road peloton"]
    assert server.queries[before:] == ["cycling", "road peloton"]


def test_address_and_key_come_from_the_settings_file(
    server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FOCUSCRAWL_SEARXNG_URL")
    assert "set FOCUSCRAWL_SEARXNG_URL, or url under [searxng]" in refused()
    file = settings_file()
    file.parent.mkdir(parents=True)
    file.write_text(f'[searxng]\nurl = "{server.url}/"\nkey = "s3cret"\nlanguage = "de"\n')
    assert search("searxng", "peloton", 1)[0]
    assert server.asked[0].headers["Authorization"] == "Bearer s3cret"
    assert server.asked[0].query["language"] == ["de"]
    server.answer = lambda _: Said(b'{"error": "no s3cret"}', 400)
    assert "s3cret" not in refused()
    monkeypatch.setenv("FOCUSCRAWL_SEARXNG_URL", "http://search.example/")
    assert "in clear text" in refused()
    file.write_text("[searxng")
    assert "is no TOML file" in refused()


def test_pages_of_hosts_are_found_by_words_of_their_urls(
    server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_source("common-crawl:bikes.example", "focuscrawl")) as source:
        assert source.plan_queries(["road BIKES", "tea"], ["road tea"]) == ["road bikes tea"]
    urls, _ = search("common-crawl:bikes.example,tea.example,none.example", "bikes tea", 5)
    assert urls == [*[*BIKES][:5], *TEA]
    assert server.asked[0].path == "/collinfo.json"
    assert {each.path for each in server.asked[1:]} == {f"/{COLLECTION}-index"}
    assert len(server.asked) == 4  # the collections once, and three hosts
    assert search("common-crawl:bikes.example", "(tea", 5)[0] == []
    server.answer = lambda _: Said(b"<p>no index", 200, HTML)
    assert "is no list of collections" in refused("common-crawl:bikes.example")
    monkeypatch.setenv("FOCUSCRAWL_COMMON_CRAWL_COLLECTION", COLLECTION)
    assert "no lines of an index" in refused("common-crawl:bikes.example")
    server.answer = lambda _: Said(b"SlowDown", 503, {"Retry-After": "86400"})
    assert "answers 503, and asks to wait" in refused("common-crawl:bikes.example")


def test_queries_are_proposed_from_words_of_relevant_pages(crawled: Run) -> None:
    with closing(open_store(crawled.kept.folder)) as store:
        queries = propose_queries(read_titles(store))
    titles = " ".join(
        title.lower()
        for (title,) in crawled.kept.query("SELECT title FROM pages WHERE relevance > 0.5")
        if title
    )
    assert len(set(queries)) == 5
    words = {word for query in queries for word in query.split()}
    assert sum(word in titles for word in words) > len(words) / 2  # the others are of headings
