"""Pages to ask a person about, and the answers in a table."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.errors import UserError
from focuscrawl.feedback.suggestions import (
    KINDS,
    Suggestion,
    order_by_doubt,
    read_judgements,
    read_verdict,
    suggest,
    write_questions,
)
from focuscrawl.report.status import open_store

from .shelves import Shelf, at, open_crawl, run

if TYPE_CHECKING:
    Asked = Callable[..., list[Suggestion]]


@pytest.fixture
def shelf() -> Shelf:
    """A jazz page among dull ones, a dull one among jazz pages, and two of one title."""
    shelf = Shelf()
    jazz = [f"/j{i}" for i in range(5)]
    shelf.page("/", "start jazz", *jazz, "/dull", head="<title>start</title>")
    for path in jazz:
        shelf.page(path, "jazz", "/", *jazz, "/dull", head=f"<title>{path}</title>")
    shelf.page("/dull", "nothing", *jazz, "/d0", head="<title>dull</title>")
    for i in range(4):
        rest = [f"/d{j}" for j in range(4) if j != i]
        shelf.page(f"/d{i}", f"dull {i}", *rest, "/odd", head=f"<title>d{min(i, 2)}</title>")
    shelf.page("/odd", "jazz", "/d0", "/d1", "/d2", head="<title>odd</title>")
    return shelf


@pytest.fixture
def folder(shelf: Shelf, tmp_path: Path) -> Path:
    crawl = open_crawl(tmp_path / "crawl", shelf, "/")
    run(crawl)
    crawl.close("frontier_empty")
    return tmp_path / "crawl"


@pytest.fixture
def asked(folder: Path, shelf: Shelf) -> Callable[..., list[Suggestion]]:
    def ask(n: int = 30, **options: Any) -> list[Suggestion]:
        with closing(open_store(folder)) as store:
            return suggest(store, [shelf], n, **options)

    return ask


def test_neighbours_tell_what_is_doubtful_and_what_was_missed(asked: Asked) -> None:
    (doubtful,) = asked(1, kinds=["doubtful"])
    assert doubtful.url == at("/odd")
    assert asked(1, kinds=["missed"])[0].url == at("/dull")
    assert doubtful.reason.endswith("(4 pages)")  # /d0 to /d3, whoever links


def test_kinds_take_turns_and_versions_of_a_page_are_asked_about_once(asked: Asked) -> None:
    pages = asked(kinds=list(KINDS))
    kinds = [page.kind for page in pages[: len(KINDS)]]
    assert kinds == list(KINDS)
    titles = [page.title for page in pages]
    assert len(set(titles)) == len(titles)  # /d2 and /d3 have one
    known = [page.url for page in pages if page.title == "d2"]
    assert "d2" not in {page.title for page in asked(kinds=list(KINDS), known=known)}


def test_without_a_kind_pages_are_uncertain_and_none_is_known_or_lost(
    asked: Asked, folder: Path, shelf: Shelf
) -> None:
    pages = asked()
    assert {page.kind for page in pages} == {"uncertain"}
    assert pages == asked()
    known = [page.url for page in pages[:3]]
    assert not {page.url for page in asked(known=known)} & set(known)
    shelf.put("/odd", "no page", content_type="application/pdf")
    assert at("/odd") in {page.url for page in pages}
    assert at("/odd") not in {page.url for page in asked()}  # nobody could learn from it


def test_many_versions_of_one_page_leave_room_for_others(tmp_path: Path) -> None:
    shelf = Shelf()
    versions = [f"/v{i}" for i in range(30)]
    shelf.page("/", "start", "/other", *versions, head="<title>start</title>")
    shelf.page("/other", "dull", head="<title>other</title>")
    for path in versions:
        shelf.page(path, f"dull {path}", head="<title>version</title>")
    crawl = open_crawl(tmp_path, shelf, "/")
    run(crawl)
    crawl.close("frontier_empty")
    with closing(open_store(tmp_path)) as store:
        found = suggest(store, [shelf], 1, known=[at("/"), at("/v0")])
    assert [page.url for page in found] == [at("/other")]


SWING, BEBOP, OPERA = ("swing band", "bebop quartet", "opera aria")


def bags(*texts: str) -> list[Counter[str]]:
    return [Counter(text.split()) for text in texts]


def test_of_doubtful_pages_that_are_alike_one_is_asked_about() -> None:
    pages = bags(SWING, SWING, OPERA, BEBOP)
    relevance = np.array([0.5, 0.49, 0.4, 0.97])
    first, second, third, last = order_by_doubt(relevance, pages, [])
    assert (first, second, third, last) == (0, 2, 3, 1)


def test_pages_unlike_those_judged_come_first() -> None:
    pages = bags(SWING, OPERA)
    relevance = np.array([0.5, 0.3])
    assert [*order_by_doubt(relevance, pages, [])] == [0, 1]
    assert [*order_by_doubt(relevance, pages, bags(SWING))] == [1, 0]
    assert not [*order_by_doubt(np.zeros(0), [], bags(SWING))]


def test_doubt_decides_among_unlike_pages_and_a_sure_critic_is_asked_about_them_too() -> None:
    pages = bags(SWING, OPERA, BEBOP)
    assert [*order_by_doubt(np.array([0.999, 0.45, 0.2]), pages, [])] == [1, 2, 0]
    sure = [*order_by_doubt(np.array([1.0, 1.0, 0.0]), bags(SWING, SWING, OPERA), [])]
    assert sure == [0, 2, 1]


def test_an_empty_crawl_has_nothing_to_ask(tmp_path: Path) -> None:
    shelf = Shelf()
    crawl = open_crawl(tmp_path, shelf, "/gone")
    run(crawl)
    crawl.close("frontier_empty")
    with closing(open_store(tmp_path)) as store, pytest.raises(UserError, match="no HTML page"):
        suggest(store, [shelf])


def test_questions_are_written_without_formulas_and_answers_read(
    asked: Asked, tmp_path: Path
) -> None:
    path = tmp_path / "q.csv"
    pages = [*asked(3), Suggestion("http://x.example/", "=1+1\n\x1b[0m", 0.5, "hub", "")]
    write_questions(pages, path)
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert rows[3]["title"].startswith("'=1+1")
    assert "\x1b" not in path.read_text()
    with pytest.raises(UserError, match="exists already"):
        write_questions(pages, path)
    for row, verdict in zip(rows, ("Yes", "-", "", "?"), strict=True):
        row["verdict"] = verdict
    with path.open("w") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    assert read_judgements(path) == ([pages[0].url], [pages[1].url])
    with path.open("a") as file:
        file.write(f"{pages[0].url},no,,,\n")
    with pytest.raises(UserError, match="both good and bad"):
        read_judgements(path)


@settings(max_examples=60)
@given(st.text(max_size=6))
def test_any_word_is_a_verdict_or_none(text: str) -> None:
    try:
        assert read_verdict(text) in (True, False, None)
    except ValueError:
        assert text.strip()
