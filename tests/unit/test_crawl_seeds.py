"""Start URLs, as users name them."""

from __future__ import annotations

import csv
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scrapy import Request, Spider
from twisted.python.failure import Failure

from focuscrawl.cli.critic_examples import read_url_arguments
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.engine.spider_requests import LinkRequestSettings, SpiderRequests
from focuscrawl.errors import RequestCancelledError, UserError
from focuscrawl.foundation.urls import MAX_URL_LENGTH

from .shelves import given_out, open_crawl

if TYPE_CHECKING:
    from focuscrawl.crawl import Crawl, Fetch

STEM = "http://a.example/"
LONGEST = STEM + "x" * (MAX_URL_LENGTH - len(STEM))
FILES = {
    "seeds.txt": "# mine\n{}\n",
    "seeds.csv": "topic,url\n/A,{}\n",
    "topic.toml": 'words = ["jazz"]\nseeds = ["{}"]\n',
}


def test_the_longest_seed_is_kept() -> None:
    assert read_seeds(LONGEST, ()) == [LONGEST]


@pytest.mark.parametrize("name", FILES)
def test_no_seed_is_too_long(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(FILES[name].format(LONGEST), encoding="utf-8")
    assert read_seeds(str(path), ("/A",)) == [LONGEST]
    path.write_text(FILES[name].format(f"{LONGEST}x"), encoding="utf-8")
    for source in (str(path), f"{LONGEST}x"):
        with pytest.raises(UserError, match="has 2,084 characters") as error:
            read_seeds(source, ("/A",))
        assert len(str(error.value)) < 500


@pytest.mark.parametrize("between", [",", ";", "\t"])
def test_tables_are_as_spreadsheets_write_them(tmp_path: Path, between: str) -> None:
    rows = [("Topic", "URL"), ("/A", "http://a.example/1,2;3"), ("/B", "http://b.example/")]
    path = tmp_path / "seeds.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=between).writerows(rows)
    assert read_seeds(str(path), ("/A",)) == ["http://a.example/1,2;3"]


def test_a_table_of_one_topic_needs_no_topic_argument(tmp_path: Path) -> None:
    path = tmp_path / "targets.csv"
    path.write_text("topic,url\n/A,http://a.example/1\n/A,http://a.example/2\n")
    assert read_url_arguments([str(path), "http://a.example/2 http://a.example/3"], "targets") == [
        "http://a.example/1",
        "http://a.example/2",
        "http://a.example/3",
    ]
    path.write_text("topic,url\n/A,a page\n")
    with pytest.raises(UserError, match=r"targets\.csv, row 1: 'a page' is not an http\(s\) URL"):
        read_url_arguments([str(path)], "targets")
    path.write_text("topic,url\n/A,http://a.example/1\n/B,http://b.example/\n")
    with pytest.raises(UserError, match=r"targets\.csv has rows of 2 topics \(/A, /B, "):
        read_url_arguments([str(path)], "targets")
    path.write_text("topic,url\n")
    with pytest.raises(UserError, match=r"targets\.csv contains no URL"):
        read_url_arguments([str(path)], "targets")


def test_what_a_table_has_too_many_cells_of_is_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "seeds.csv"
    path.write_text("url\nhttp://a.example/Paris,_Texas\n", encoding="utf-8")
    with pytest.raises(UserError, match="row 1 has more cells than the header"):
        read_seeds(str(path), ())
    path.write_text('url\n"http://a.example/Paris,_Texas",\n', encoding="utf-8")
    assert read_seeds(str(path), ()) == ["http://a.example/Paris,_Texas"]
    path.write_text("x" * 200_000, encoding="utf-8")
    with pytest.raises(UserError, match="is not an http"):
        read_seeds(str(path), ())


def test_a_list_may_have_commas_in_its_urls_and_no_entry_that_is_none(tmp_path: Path) -> None:
    two = "http://a.example/1,2, https://b.example/"
    assert read_seeds(two, ()) == ["http://a.example/1,2", "https://b.example/"]
    assert read_seeds(two.replace(", ", " \n"), ()) == read_seeds(two, ())
    assert read_seeds(two.replace(", ", " " * 100_000), ()) == read_seeds(two, ())
    for wrong in ("www.c.example", " c.example/"):
        with pytest.raises(UserError, match=r"c.example/?' is not an http"):
            read_seeds(f"{two},{wrong}", ())
    path = tmp_path / "seeds.txt"
    path.write_text("http://a.example/caf\xe9\n", encoding="latin-1")
    with pytest.raises(UserError, match="save it as UTF-8 text"):
        read_seeds(str(path), ())


def test_none_of_a_strangers_knowledge_is_either(tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, None, "/")
    assert crawl.add_seeds([f"{LONGEST}x", LONGEST]) == 1
    assert crawl.resolve([f"{LONGEST}x", LONGEST]) == [None, LONGEST]
    crawl.close("interrupted")


def own_requests(crawl: Crawl, failed: Callable[[Failure], object] = print) -> SpiderRequests:
    spider = Spider("own")
    return SpiderRequests(crawl, spider, LinkRequestSettings.of(spider, crawl.config), failed)


def after_the_start(crawl: Crawl) -> Fetch:
    """Let the start page fail, and return what comes next."""
    crawl.record_failed(given_out(crawl).id, "refused", 0.0)
    return given_out(crawl, 60.0)


def test_a_spiders_own_long_request_goes_past_the_frontier(tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, None, "/")
    own = own_requests(crawl)
    known = len(crawl.urls)
    assert own.add(Request(f"{LONGEST}x"))
    assert len(crawl.urls) == known
    request = own.pop_bypassing()
    assert request is not None
    assert request.url == f"{LONGEST}x"
    crawl.close("interrupted")


def test_a_request_that_is_given_up_as_the_crawl_ends_has_not_failed(tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, None, "/")
    reported: list[Failure] = []
    told: list[Failure] = []
    own = own_requests(crawl, reported.append)
    assert own.add(Request(f"{STEM}page", errback=told.append))
    request = own.pop(after_the_start(crawl), {})
    assert request is not None
    assert request.errback is not None
    errors = RequestCancelledError("the crawl ends"), OSError("refused")
    given_up, failed = (Failure(error) for error in errors)  # type: ignore[no-untyped-call]
    request.errback(given_up)
    request.errback(failed)
    assert reported == [given_up, failed]
    assert told == [failed]
    crawl.close("interrupted")


def test_of_requests_for_a_page_the_first_waits_and_others_are_second_fetches_or_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    crawl = open_crawl(tmp_path, None, "/")
    own = own_requests(crawl)
    url = f"{STEM}page"
    assert own.add(Request(url, cb_kwargs={"k": 1}))
    assert not own.add(Request(url, cb_kwargs={"k": 2}))
    assert own.add(Request(url, cb_kwargs={"k": 3}, dont_filter=True))
    fetch = after_the_start(crawl)
    assert fetch.url == url
    first, second = own.pop(fetch, {}), own.pop_bypassing()
    assert first is not None
    assert second is not None
    assert (first.cb_kwargs, second.cb_kwargs) == ({"k": 1}, {"k": 3})
    own.close()
    assert not caplog.text
    assert own.add(Request(url, method="POST", body=b"q=1"))
    own.close()
    assert "1 requests that bypass the frontier" in caplog.text
    crawl.close("interrupted")


@pytest.mark.parametrize("text", ["http//user:hush@host/", "htp://user:hush@host/", "user:hush@h"])
def test_a_seed_that_is_no_url_shows_no_password(text: str, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(f"{text}\n", encoding="utf-8")
    for source in (text, str(seeds)):
        with pytest.raises(UserError) as refused:
            read_seeds(source, ())
        said = "".join(traceback.format_exception(refused.value))
        assert "hush" not in said
        assert "\n" not in str(refused.value)
    assert "@h" in str(refused.value)
