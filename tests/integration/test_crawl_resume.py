"""A crawl that is stopped, killed or interrupted goes on as if nothing had happened."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from focuscrawl.crawl.crawl_folder import FileControl

from .running import Run, crawl, refused, start

VIEWS = (
    """SELECT seq, url, status, relevance, topic, depth, score, referrer, bytes, duplicate_of,
    links, dropped FROM pages ORDER BY seq""",
    "SELECT * FROM links ORDER BY source, dom_position, target, anchor",
    "SELECT * FROM frontier ORDER BY url",
)


def test_a_larger_budget_goes_on(demo: dict[str, str], tmp_path: Path, crawled: Run) -> None:
    """What was disturbed in other ways is compared in `tests/endurance`."""
    budget = len(crawled.kept.order)
    folder = tmp_path / "crawl"
    assert len(crawl(folder, fresh=True, **demo, budget=budget // 2).kept.order) == budget // 2
    for _ in range(2):  # the second time there is nothing left to do
        kept = crawl(folder, **demo, budget=budget).kept
        for view in VIEWS:
            assert kept.query(view) == crawled.kept.query(view)
    assert kept.stop_reasons[:2] == ["budget", "budget"]


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
            done = crawl(tmp_path / f"crawl-{number}", *feeds, **demo, budget=15)
            said = "this run fetched nothing and wrote no feed."
            assert (said in done.stderr) == bool(run)
            kept.append({path: path.read_bytes() for path in folder.iterdir()})
        assert kept[-1] == kept[-2]
    assert len(kept[-1]) == 7
    assert len((folder / "a.jsonl").read_text().splitlines()) == 15
    more = crawl(tmp_path / "crawl-0", "-O", str(folder / "a.jsonl"), **demo, budget=20)
    assert "had ended" not in more.stderr
    assert len((folder / "a.jsonl").read_text().splitlines()) == 5


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
    demo: dict[str, str], folder: Path, other: dict[str, str], named: str
) -> None:
    before = (folder / "crawl.db").read_bytes()
    line = refused(folder, **{**demo, **other, "budget": 65})
    assert f"its {named} is" in line
    assert str(folder) in line
    assert (folder / "crawl.db").read_bytes() == before


def test_two_at_once_in_one_folder_are_refused(demo: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    with start(folder, **demo, budget=0) as first:
        first.wait_for(1)
        assert "in use by another process" in refused(folder, **demo, budget=0)
        run = first.stop(signal.SIGINT)
    assert run.kept.stop_reasons == ["interrupted"]
    urls = run.kept.urls
    assert len(urls) == len(set(urls))


def test_a_crawl_is_interrupted_while_scrapy_starts(demo: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    with start(folder, fresh=True, **demo, budget=0) as running:
        control = FileControl(folder)
        while not control.in_use or control.is_starting:
            time.sleep(0.001)
        run = running.stop(signal.SIGINT)
    assert run.kept.stop_reasons == ["interrupted"]
