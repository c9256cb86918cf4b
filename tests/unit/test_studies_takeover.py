"""The crawl that switches from the baseline to the apprentice, and work kept topic by topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from focuscrawl.crawl import CrawlConfig, open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.critic.critic_files import find_model
from focuscrawl.report.measures import load_pages
from studies.takeover import take_over
from studies.topic_tasks import Task

if TYPE_CHECKING:
    from pathlib import Path

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
    plan = CrawlConfig(
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
