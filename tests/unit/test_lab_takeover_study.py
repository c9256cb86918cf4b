"""The crawl that switches from the baseline to the apprentice, and work kept topic by topic."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd
import pytest

from focuscrawl.crawl import CrawlPlan, open_crawl
from focuscrawl.crawl.replay import replay
from focuscrawl.crawl.seeds import read_seeds
from focuscrawl.critic.loading import find_model
from focuscrawl.lab.takeover_study import take_over
from focuscrawl.lab.topic_tasks import Task, do_all, read_tables
from focuscrawl.report.measures import load_pages

TOPIC = "/Sports/Cycling"


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(
        kind="takeover",
        web="demo",
        recording="demo",
        critic="models/demo",
        topic=TOPIC,
        labels="",
        seeds=tuple(read_seeds(str(find_model("demo") / "seeds.csv"), (TOPIC,))),
        budget=60,
        folder=str(tmp_path / "takeover" / "demo" / "Sports_Cycling"),
    )


def test_the_first_half_is_best_first_and_the_second_is_not(task: Task, tmp_path: Path) -> None:
    fetches = take_over(task)["fetches"]
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("\n".join(task.seeds))
    plan = CrawlPlan(
        topic=TOPIC,
        seeds=str(seeds),
        strategy="best-first",
        budget=60,
        web="demo",
        crawl_dir=str(tmp_path / "crawl"),
    )
    replay(open_crawl(plan))
    baseline = load_pages(str(tmp_path / "crawl"))["url"].tolist()
    assert fetches["url"].tolist()[:30] == baseline[:30]
    assert fetches["url"].tolist()[30:] != baseline[30:]
    assert fetches["seq"].tolist() == list(range(1, 61))
    assert fetches["after_switch"].tolist() == [False] * 30 + [True] * 30


def test_the_frontier_is_scored_before_and_after(task: Task) -> None:
    tables = take_over(task)
    priorities = tables["priorities"]
    assert priorities["before"].sum() == priorities["after"].sum() > 0
    assert priorities["before"].tolist() != priorities["after"].tolist()
    again = take_over(task)
    for name, table in tables.items():
        pd.testing.assert_frame_equal(table, again[name])


def square(task: Task) -> dict[str, pd.DataFrame]:
    """Stand for work."""
    if task.budget == 13:
        raise ValueError("thirteen")
    return {"numbers": pd.DataFrame({"square": [task.budget**2]})}


@pytest.mark.long
def test_work_is_kept_under_its_terms(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])  # its processes import this module
    other = dataclasses.replace(task, topic="/B", folder=str(tmp_path / "takeover/demo/B"))
    tasks = [task, other, dataclasses.replace(task, budget=13, folder=str(tmp_path / "bad"))]
    ended = {each.budget: error for each, error in do_all(square, tasks[1:], 1)}
    assert ended[60] is None
    assert isinstance(ended[13], ValueError)
    assert [each.done for each in tasks] == [False, True, False]
    assert [each.topic for each, _ in do_all(square, tasks[:2], 1)] == [TOPIC]  # the other is done
    table = read_tables(tmp_path / "takeover", "numbers")
    assert table is not None
    assert sorted(table["topic"]) == ["/B", TOPIC]
    assert set(table["square"]) == {3600}
    assert read_tables(tmp_path / "takeover", "others") is None
    assert not dataclasses.replace(other, budget=61).done
