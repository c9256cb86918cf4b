"""A crawl that is stopped, killed or interrupted goes on as if nothing had happened."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from .running import Run, crawl, crawl_until, start

if TYPE_CHECKING:
    from pathlib import Path

BUDGET = 240
PAGES = """SELECT seq, url, status, relevance, topic, depth, score, referrer, bytes, duplicate_of,
    links, dropped FROM pages ORDER BY seq"""
LINKS = "SELECT * FROM links ORDER BY source, dom_position, target, anchor"
FRONTIER = "SELECT * FROM frontier ORDER BY url"


@pytest.fixture(scope="module")
def whole(demo: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A crawl that nobody disturbed."""
    return crawl(tmp_path_factory.mktemp("whole") / "crawl", fresh=True, **demo, budget=BUDGET)


def assert_same(done: Run, whole: Run) -> None:
    """Every page once, numbered without gaps, in the same order; links and frontier alike."""
    assert done.returncode == 0, done.stderr
    assert [seq for seq, _ in done.kept.order] == list(range(1, BUDGET + 1))
    assert len(set(done.kept.urls)) == BUDGET
    for view in (PAGES, LINKS, FRONTIER):
        assert done.kept.query(view) == whole.kept.query(view)


def test_a_larger_budget_goes_on(demo: dict[str, str], tmp_path: Path, whole: Run) -> None:
    first = crawl(tmp_path / "crawl", **demo, budget=BUDGET // 2)
    assert len(first.kept.order) == BUDGET // 2
    second = crawl(tmp_path / "crawl", **demo, budget=BUDGET)
    assert_same(second, whole)
    assert second.kept.stop_reasons == ["budget", "budget"]
    again = crawl(tmp_path / "crawl", **demo, budget=BUDGET)
    assert_same(again, whole)


def test_a_crawl_that_had_ended_leaves_its_feeds_as_they_are(
    demo: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "feeds"
    given = [
        part for end in ("jsonl", "csv", "xml", "parquet") for part in ("-O", folder / f"a.{end}")
    ]
    added = ["-o", folder / "b.json", "-o", folder / "b.csv"]
    named = {str(folder / "c.json"): {"format": "json", "overwrite": True, "store_empty": True}}
    kept: list[dict[Path, bytes]] = []
    ways = [[*map(str, given)], [*map(str, added)], ["-s", f"FEEDS={json.dumps(named)}"]]
    for number, feeds in enumerate(ways):
        for run in range(2):
            done = crawl(tmp_path / f"crawl-{number}", *feeds, **demo, budget=20)
            assert done.returncode == 0, done.stderr
            said = "This crawl had ended; nothing was fetched, and no feed was written."
            assert (said in done.stderr) == bool(run)
            kept.append({path: path.read_bytes() for path in folder.iterdir()})
        assert kept[-1] == kept[-2]
    assert len(kept[-1]) == 7
    assert len((folder / "a.jsonl").read_text().splitlines()) == 20
    more = crawl(tmp_path / "crawl-0", "-O", str(folder / "a.jsonl"), **demo, budget=25)
    assert "had ended" not in more.stderr
    assert len((folder / "a.jsonl").read_text().splitlines()) == 5


def test_killed_at_any_moment(demo: dict[str, str], tmp_path: Path, whole: Run) -> None:
    folder = tmp_path / "crawl"
    for moment in (0, 3, 90, 180):
        killed = crawl_until(folder, moment, signal.SIGKILL, **demo, budget=BUDGET)
        assert killed.returncode == -signal.SIGKILL
        assert len(killed.kept.order) < BUDGET
    assert_same(crawl(folder, **demo, budget=BUDGET), whole)


def test_interrupted_once_it_ends_in_order(
    demo: dict[str, str], tmp_path: Path, whole: Run
) -> None:
    folder = tmp_path / "crawl"
    stopped = crawl_until(folder, 60, signal.SIGINT, **demo, budget=BUDGET)
    assert stopped.returncode == 0
    assert stopped.kept.stop_reasons == ["interrupted"]
    assert 60 <= len(stopped.kept.order) < BUDGET
    assert "Traceback" not in stopped.stderr
    assert "\nstopped       interrupted" in stopped.stderr
    assert_same(crawl(folder, **demo, budget=BUDGET), whole)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"topic": "/Sports/Running"}, "topic"),
        ({"strategy": "breadth-first"}, "strategy"),
        ({"critic": "server.critic:judge"}, "critic"),
        ({"web": "demo:2"}, "web"),
    ],
)
def test_another_crawl_is_refused(
    demo: dict[str, str], tmp_path: Path, whole: Run, other: dict[str, str], named: str
) -> None:
    folder = tmp_path / "crawl"
    shutil.copytree(whole.kept.folder, folder)
    before = (folder / "crawl.db").read_bytes()
    refused = crawl(folder, **{**demo, **other, "budget": BUDGET + 5})
    assert refused.returncode == 2
    (line,) = refused.stderr.splitlines()
    assert f"its {named} is" in line
    assert str(folder) in line
    assert (folder / "crawl.db").read_bytes() == before


def test_another_schema_is_refused(demo: dict[str, str], tmp_path: Path, whole: Run) -> None:
    folder = tmp_path / "crawl"
    shutil.copytree(whole.kept.folder, folder)
    with closing(sqlite3.connect(folder / "crawl.db")) as connection, connection:
        connection.execute("UPDATE meta SET value = '999' WHERE key = 'schema_version'")
    before = (folder / "crawl.db").read_bytes()
    refused = crawl(folder, **demo, budget=BUDGET + 5)
    assert refused.returncode == 2
    (line,) = refused.stderr.splitlines()
    assert "999" in line
    assert "crawl again" in line
    assert (folder / "crawl.db").read_bytes() == before


def test_two_at_once_in_one_folder_are_refused(demo: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    with start(folder, **demo, budget=0) as first:
        first.wait_for(1)
        second = crawl(folder, **demo, budget=0)
        assert second.returncode == 2
        (line,) = second.stderr.splitlines()
        assert "being crawled by another process" in line
        run = first.stop(signal.SIGINT)
    assert run.kept.stop_reasons == ["interrupted"]
    urls = run.kept.urls
    assert len(urls) == len(set(urls))
