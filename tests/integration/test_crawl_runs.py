"""Budget, order, stop reasons, views and feeds of crawls of the synthetic web."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from .running import Run, crawl

BUDGET = 80


@pytest.fixture(scope="module")
def feeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("feeds")


@pytest.fixture(scope="module")
def run(demo: dict[str, str], tmp_path_factory: pytest.TempPathFactory, feeds: Path) -> Run:
    """One crawl with every kind of feed."""
    outputs = [
        part for kind in ("jsonl", "csv", "parquet") for part in ("-O", f"{feeds}/p.{kind}")
    ]
    folder = tmp_path_factory.mktemp("runs") / "crawl"
    return crawl(folder, *outputs, **demo, budget=BUDGET)


@pytest.fixture(scope="module")
def shuffled(demo: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Crawls in random order: two of one random state, one of another."""
    folder = tmp_path_factory.mktemp("shuffled")
    arguments = {**demo, "strategy": "random", "budget": BUDGET}
    return {
        name: crawl(folder / name, fresh=name == "again", **arguments, random_state=state)
        for name, state in (("first", 3), ("again", 3), ("other", 4))
    }


def test_the_budget_is_exact(run: Run) -> None:
    assert [seq for seq, _ in run.kept.order] == list(range(1, BUDGET + 1))
    assert len(set(run.kept.urls)) == BUDGET
    assert run.kept.stop_reasons == ["budget"]
    assert "WARNING" not in run.stderr
    assert "ERROR" not in run.stderr


def test_seeds_come_first_and_in_order(run: Run, demo: dict[str, str]) -> None:
    seeds = demo["seeds"].split(",")
    assert run.kept.urls[: len(seeds)] == seeds
    rows = run.kept.query("SELECT referrer, score, depth FROM pages ORDER BY seq")
    assert rows[: len(seeds)] == [(None, None, 0)] * len(seeds)
    assert all(referrer is not None for referrer, _, _ in rows[len(seeds) :])


def test_best_first_fetches_what_scores_highest(run: Run) -> None:
    later = run.kept.query("SELECT score FROM pages WHERE score IS NOT NULL ORDER BY seq DESC")
    waiting = run.kept.query("SELECT max(score) FROM frontier WHERE state = 'queued'")
    assert later[0][0] >= waiting[0][0]


def test_a_random_order_is_that_of_its_random_state(run: Run, shuffled: dict[str, Run]) -> None:
    first, again, other = (shuffled[name].kept for name in ("first", "again", "other"))
    assert len(first.order) == BUDGET
    assert first.order == again.order
    assert first.query("SELECT * FROM links") == again.query("SELECT * FROM links")
    assert first.urls != other.urls
    harvest = "SELECT avg(relevance) FROM pages"
    assert run.kept.query(harvest)[0][0] > first.query(harvest)[0][0]  # best-first finds more


def test_every_known_url_is_fetched_or_in_the_frontier(run: Run) -> None:
    lost = """SELECT target FROM links
        WHERE target NOT IN (SELECT url FROM frontier)
        AND target NOT IN (SELECT url FROM pages)"""
    assert run.kept.query(lost) == []
    assert run.kept.query("SELECT f.url FROM frontier f JOIN pages p ON p.url = f.url") == []
    states = {state for (state,) in run.kept.query("SELECT DISTINCT state FROM frontier")}
    assert "queued" in states
    assert states <= {"queued", "excluded", "unfollowed"}
    assert run.kept.query(
        "SELECT count(*) FROM links WHERE source NOT IN (SELECT url FROM pages)"
    ) == [(0,)]


def _items(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    return pq.read_table(path).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv"])
def test_a_feed_holds_the_view_of_the_pages(run: Run, feeds: Path, kind: str) -> None:
    items = sorted(_items(feeds / f"p.{kind}"), key=lambda item: int(item["seq"]))
    rows = run.kept.rows("SELECT * FROM pages ORDER BY seq")
    if kind == "parquet":  # whose times are times
        rows = [row | {"fetched_at": datetime.fromisoformat(row["fetched_at"])} for row in rows]
    if kind == "csv":
        rows = [{k: "" if v is None else str(v) for k, v in row.items()} for row in rows]
    assert items == rows


def test_without_a_terminal_there_are_lines_and_a_summary_at_the_end(run: Run) -> None:
    assert "\r" not in run.stderr
    begin, *_ = run.stderr.splitlines()
    assert "Crawling /Sports/Cycling on the web demo: 5 start pages, strategy best-first" in begin
    assert str(run.kept.folder) in begin
    for line in ("stopped", "harvest rate", "best hosts", "saved in"):
        assert f"\n{line}" in run.stderr
    assert str(run.kept.folder) in run.stderr.rstrip().splitlines()[-1]
