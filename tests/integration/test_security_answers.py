"""No answer ends a crawl: what a store cannot keep is recorded as such, and all else is kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from longer import long
from server.bad.refused import LONGEST, PAGES, STATUSES

from .badweb import CRITIC, SETTINGS, explore
from .running import crawl
from .test_pipelines import between
from .workers import Workers, assert_whole, query

if TYPE_CHECKING:
    from pathlib import Path

    from .badweb import BadWeb
    from .postgres import PostgresServer

LONG = 600.0  # seconds after which something hangs
OPTIONS = [part for name, value in SETTINGS.items() for part in ("-s", f"{name}={value}")]
SHARDS = ("-s", "FOCUSCRAWL_SHARDS=16")  # and a lease of a minute: a machine may be busy


def share(
    url: str, folder: Path, workers: int, seeds: str, *options: str, budget: int
) -> list[dict[str, Any]]:
    """Crawl with several workers to the end, each of which ends well; return the pages."""
    arguments = {**CRITIC, "seeds": seeds, "budget": budget}
    folder.mkdir()
    with Workers(url, folder, arguments, *OPTIONS, *SHARDS, *options) as sharing:
        for _ in range(workers):
            sharing.start()
        codes = sharing.wait(LONG)
        said = "".join(map(sharing.log, range(workers)))
    assert codes == [0] * workers, said
    assert "Traceback" not in said
    names = "seq", "url", "status", "error", "relevance", "links", "dropped"
    found = query(url, f"SELECT {', '.join(names)} FROM pages ORDER BY seq")
    return [dict(zip(names, row, strict=True)) for row in found]


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


@pytest.mark.parametrize("workers", [*long(1), 3])
def test_nor_is_it_one_for_workers(
    bad_web: BadWeb, postgres: PostgresServer, tmp_path: Path, workers: int
) -> None:
    url, seeds = postgres.url(f"statuses_{workers}"), bad_web.seeds("statuses", "good")
    pages = share(url, tmp_path / "first", workers, seeds, budget=20)
    assert_whole(url, 20)
    assert len(pages) == 20
    pages = share(url, tmp_path / "again", 1, seeds, budget=1000)
    assert_statuses(pages, bad_web)
    assert_whole(url, len(pages))


@pytest.mark.parametrize("any_media", [0, *long(1)])
def test_no_long_url_comes_into_a_crawl(bad_web: BadWeb, tmp_path: Path, any_media: int) -> None:
    given = {"FOCUSCRAWL_ANY_MEDIA": any_media}
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


@pytest.mark.parametrize("workers", [*long(1), 3])
def test_nor_does_it_with_workers(
    bad_web: BadWeb, postgres: PostgresServer, tmp_path: Path, workers: int
) -> None:
    url = postgres.url(f"long_urls_{workers}")
    seeds = bad_web.seeds("long-urls", "good")
    media = ("-s", "FOCUSCRAWL_ANY_MEDIA=1")
    pages = share(url, tmp_path / "first", workers, seeds, *media, budget=1000)
    ((longest,),) = query(url, "SELECT max(length(url)) FROM url")
    assert longest == LONGEST
    assert_whole(url, len(pages))


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
    run = crawl(tmp_path / "crawl", *UNFIT, **demo, budget=BUDGET)
    assert run.returncode == 0, run.stderr
    turns = [turn % 6 for turn in range(1, BUDGET // 7 + 1)]
    refused = sum(turn in (0, 2, 3, 4) for turn in turns)  # SQLite keeps 2**40, and NUL
    assert_isolated(run.kept.query(ROWS), refused)
    assert "Traceback" not in run.stderr
    assert run.stderr.count("cannot be stored") == refused
    events = run.kept.query("SELECT DISTINCT detail FROM events WHERE kind = 'unfit'")
    assert events == [("a ? b  c",)]
    before = run.kept.order
    again = crawl(tmp_path / "crawl", **demo, budget=BUDGET + 50)
    assert again.returncode == 0, again.stderr
    assert again.kept.order[:BUDGET] == before
    assert len(again.kept.order) == BUDGET + 50
    ((known, last),) = run.kept.query("SELECT count(*), max(id) + 1 FROM url")
    assert known == last  # none is missing


@pytest.mark.parametrize("workers", [*long(1), 3])
def test_what_postgresql_refuses_is_recorded_as_refused(
    demo: dict[str, str], postgres: PostgresServer, tmp_path: Path, workers: int
) -> None:
    url = postgres.url(f"refusals_{workers}")
    with Workers(url, tmp_path, {**demo, "budget": BUDGET}, *SHARDS, *UNFIT) as sharing:
        for _ in range(workers):
            sharing.start()
        codes = sharing.wait(LONG)
        said = "".join(map(sharing.log, range(workers)))
    assert codes == [0] * workers, said
    assert "Traceback" not in said
    refused = said.count("cannot be stored")
    assert refused > (BUDGET / 7 - workers) * 5 / 6 - workers
    assert_isolated(query(url, ROWS), refused)
    assert_whole(url, BUDGET)
    (tmp_path / "again").mkdir()
    more = {**demo, "budget": BUDGET + 50}
    with Workers(url, tmp_path / "again", more, *SHARDS) as sharing:
        sharing.start()
        assert sharing.wait(LONG) == [0]
    assert_whole(url, BUDGET + 50)


@pytest.mark.parametrize(("state", "ends"), [("53100", False), ("58030", True)])
def test_a_server_that_cannot_write_refuses_nothing(
    demo: dict[str, str], postgres: PostgresServer, tmp_path: Path, state: str, ends: bool
) -> None:
    url = postgres.url(f"unwritable_{state}")
    with Workers(url, tmp_path, {**demo, "budget": BUDGET}, *SHARDS, up_to=60) as sharing:
        sharing.start()
        sharing.wait_for(20, LONG)
        query(
            url,
            f"""
            CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'no room on the disk' USING ERRCODE = '{state}'; END $$;
            CREATE TRIGGER full_disk BEFORE INSERT ON page EXECUTE FUNCTION no_room()""",
        )
        sharing.go_on()
        if not ends:
            sharing.wait_until_said(0, "the store is away", LONG)
            query(url, "DROP TRIGGER full_disk ON page")
        codes = sharing.wait(LONG)
        said = sharing.log(0)
    assert codes == [int(ends)], said
    assert "no room on the disk" in said
    assert "cannot be stored" not in said
    assert query(url, "SELECT seq FROM page WHERE status = 0") == []
    if not ends:
        assert_whole(url, BUDGET)
