"""No answer ends a crawl: what a store cannot keep is recorded as such, and all else is kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from server.bad.refused import LONGEST, PAGES, STATUSES

from .badweb import explore
from .running import crawl
from .test_pipelines import between

if TYPE_CHECKING:
    from pathlib import Path

    from .badweb import BadWeb


def assert_statuses(pages: list[dict[str, Any]], web: BadWeb) -> None:
    """Check that wrong statuses are errors, and that everything else was crawled."""
    by_name = {web.short(row["url"]): row for row in pages}
    for said in STATUSES:
        row = by_name[f"statuses/{said}"]
        assert (row["status"], row["relevance"]) == (0, 0.0)
        assert row["error"].startswith("no HTTP: ")
        assert said in row["error"]
    good = [name for name, row in by_name.items() if row["status"] == 200]
    assert len(good) == (PAGES + 1) + 9


def test_a_number_that_is_no_status_is_no_answer(bad_web: BadWeb, tmp_path: Path) -> None:
    seeds = bad_web.seeds("statuses", "good")
    run = explore(tmp_path / "crawl", seeds, weighed=False, FOCUSCRAWL_WARC=1)
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    assert_statuses(run.kept.rows("SELECT * FROM pages"), bad_web)
    again = explore(tmp_path / "crawl", seeds, weighed=False)
    assert again.returncode == 0, again.stderr
    assert again.kept.order == run.kept.order
    assert run.summary("errors") == f"no HTTP: {len(STATUSES)}"


def test_no_long_url_comes_into_a_crawl(bad_web: BadWeb, tmp_path: Path) -> None:
    given = {"FOCUSCRAWL_ANY_MEDIA": 1}
    run = explore(tmp_path / "crawl", bad_web.seeds("long-urls"), weighed=False, **given)
    assert run.returncode == 0, run.stderr
    ((longest,),) = run.kept.query("SELECT max(length(url)) FROM url")
    assert longest == LONGEST
    ((longest,),) = run.kept.query("SELECT max(length(canonical)) FROM page")
    assert longest is None or longest <= LONGEST
    pages = run.pages(bad_web)
    said = pages["long-urls/moved"]["error"]
    assert re.fullmatch(r"redirect to nowhere: a URL of 9,\d{3} characters", said)
    assert pages["long-urls/refresh"]["error"] is None  # it leads nowhere: a page like others
    assert pages["long-urls/canonical"]["relevance"] > 0.5
    assert pages["long-urls/linked"]["relevance"] > 0.5
    # a base that is too long is none: the links of that page lead to two more
    assert sum(row["status"] == 200 for row in pages.values()) == PAGES + 8


UNFIT = between(700, "Unfit")
BUDGET = 150


def assert_isolated(rows: list[tuple[Any, ...]], refused: int) -> None:
    """Check that what was refused is recorded as such, and every other page as it is.

    Parameters
    ----------
    rows : seq, status, error, relevance, links, links stored
    refused : how many were
    """
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    bad = [row for row in rows if (row[2] or "").startswith("not stored: ")]
    assert len(bad) == refused
    for _, status, error, relevance, links, stored in bad:
        assert (status, relevance, links, stored) == (0, 0.0, 0, 0)
        assert len(error) > len("not stored: ")
    whole = [row for row in rows if row not in bad]
    assert sum(stored > 0 for *_, stored in whole) > len(whole) / 2


ROWS = """
    SELECT p.seq, p.status, p.error, p.relevance, p.links,
        (SELECT count(*) FROM link l WHERE l.source = p.url)
    FROM page p ORDER BY p.seq"""


def test_what_a_store_refuses_is_recorded_as_refused(demo: dict[str, str], tmp_path: Path) -> None:
    run = crawl(tmp_path / "crawl", **UNFIT, **demo, budget=BUDGET)
    turns = [turn % 6 for turn in range(1, BUDGET // 7 + 1)]
    refused = sum(turn in (0, 2, 3, 4) for turn in turns)  # SQLite keeps 2**40, and NUL
    assert_isolated(run.kept.query(ROWS), refused)
    assert "Traceback" not in run.stderr
    assert run.stderr.count("cannot be stored") == refused
    events = run.kept.query("SELECT DISTINCT detail FROM events WHERE kind = 'unfit'")
    assert events == [("a ? b  c",)]
    before = run.kept.order
    again = crawl(tmp_path / "crawl", **demo, budget=BUDGET + 50)
    assert again.kept.order[:BUDGET] == before
    assert len(again.kept.order) == BUDGET + 50
    ((known, last),) = run.kept.query("SELECT count(*), max(id) + 1 FROM url")
    assert known == last  # none is missing
