"""No answer ends a crawl: what a store cannot keep is recorded as such, and all else is kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from server.bad.refused import LONGEST, PAGES, STATUSES

from .badweb import explore

if TYPE_CHECKING:
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
    assert re.fullmatch(r"redirect without target: a URL of 9,\d{3} characters", said)
    assert pages["long-urls/refresh"]["error"] is None  # it leads nowhere: a page like others
    assert pages["long-urls/canonical"]["relevance"] > 0.5
    assert pages["long-urls/linked"]["relevance"] > 0.5
    # a base that is too long is none: the links of that page lead to two more
    assert sum(row["status"] == 200 for row in pages.values()) == PAGES + 8
