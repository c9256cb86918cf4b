"""Pages that are read outside of a crawl of Scrapy's have the bounds that a crawl has."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from server.bad.hard import KINDS

import focuscrawl
from focuscrawl.critic.corpus import _BagCache, read_bags
from focuscrawl.page import parser_process, shared_parser
from focuscrawl.page.parse import visible_paragraphs
from focuscrawl.webs import read_page

from .shelves import Shelf, at, open_crawl, run

HARD = KINDS["attributes"](600_000)
ROOT = Path(focuscrawl.__file__).parent
#: what parses without a bound, or without an end to it, and who may: a folder ends with a slash
MAY_PARSE = {
    "parse_page": ("page/", "testing/", "crawl/loop.py", "report/url_lookup.py"),
    "parse_document": ("page/",),
    "parse_tree": (
        *("page/", "collection/origin.py"),
        *("topics/bookmarks.py", "webs/changing_web.py"),
    ),
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give a page less time, and end the process that pages are parsed in."""
    monkeypatch.setattr(parser_process, "MAX_SECONDS", 0.5)
    shared_parser.cache_clear()
    yield
    shared_parser().close()
    shared_parser.cache_clear()


@pytest.fixture
def web() -> Shelf:
    web = Shelf()
    web.put("/hard", HARD.decode())
    web.page("/", "jazz", "hard", "easy")
    web.page("/easy", "jazz")
    return web


def test_a_page_that_is_too_hard_is_none(web: Shelf) -> None:
    assert read_page(web, at("/hard")) is None
    assert read_page(web, at("/easy")) is not None


def test_its_words_are_not_known_and_asked_for_again(web: Shelf) -> None:
    urls = [at("/hard"), at("/easy")]
    hard, easy = read_bags(web, urls)
    assert hard is None
    assert easy
    with closing(_BagCache(web.fingerprint)) as cache:
        assert list(cache.get(urls)) == [at("/easy")]


def test_nor_is_it_shown() -> None:
    assert visible_paragraphs(HARD, None, 1000) == ([], True)


def test_a_replay_records_it(web: Shelf, tmp_path: Path) -> None:
    visits = run(open_crawl(tmp_path / "crawl", web, "/"))
    assert {each.url: each.error for each in visits} == {
        at("/"): None,
        at("/hard"): "too hard to parse",
        at("/easy"): None,
    }


def test_all_others_parse_with_bounds() -> None:
    found = {
        (name, path.relative_to(ROOT).as_posix())
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for name in MAY_PARSE.keys() & {each.name for each in node.names}
    }
    assert {(name, path) for name, path in found if not path.startswith(MAY_PARSE[name])} == set()
