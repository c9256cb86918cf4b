"""Pages to ask a person about, and the answers in a table."""

from __future__ import annotations

import csv
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.errors import UserError
from focuscrawl.feedback import KINDS, Suggestion, read_judgements, suggest, write_questions
from focuscrawl.feedback.judgements import read_verdict
from focuscrawl.report.stores import open_store

from .shelves import Shelf, at, open_crawl, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
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
    crawl = open_crawl(tmp_path / "crawl", shelf, "/")
    run(crawl)
    crawl.close("frontier_empty")
    return tmp_path / "crawl"


def asked(folder: Path, n: int = 30, **options: object) -> list[Suggestion]:
    with closing(open_store(folder)) as store:
        return suggest(store, n, **options)  # type: ignore[arg-type]


def test_neighbours_tell_what_is_doubtful_and_what_was_missed(folder: Path) -> None:
    assert asked(folder, 1, kinds=["doubtful"])[0].url == at("/odd")
    assert asked(folder, 1, kinds=["missed"])[0].url == at("/dull")
    reason = asked(folder, 1, kinds=["doubtful"])[0].reason
    assert reason.endswith("(4 pages)")  # /d0 to /d3, whoever links


def test_kinds_take_turns_and_versions_of_a_page_are_asked_about_once(folder: Path) -> None:
    pages = asked(folder)
    kinds = [page.kind for page in pages[: len(KINDS)]]
    assert kinds == list(KINDS)
    titles = [page.title for page in pages]
    assert len(set(titles)) == len(titles)  # /d2 and /d3 have one
    known = [page.url for page in pages if page.title == "d2"]
    assert "d2" not in {page.title for page in asked(folder, known=known)}


def test_an_empty_crawl_has_nothing_to_ask(tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, Shelf(), "/gone")
    run(crawl)
    crawl.close("frontier_empty")
    with closing(open_store(tmp_path)) as store, pytest.raises(UserError, match="no HTML page"):
        suggest(store)


def test_questions_are_written_without_formulas_and_answers_read(
    folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "q.csv"
    pages = [*asked(folder, 3), Suggestion("http://x.example/", "=1+1\n\x1b[0m", 0.5, "hub", "")]
    write_questions(pages, path)
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert rows[3]["title"].startswith("'=1+1")
    assert "\x1b" not in path.read_text()
    with pytest.raises(UserError, match="is there already"):
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
