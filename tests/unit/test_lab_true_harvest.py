"""The study of true harvest: a critic is not asked what its own crawl is worth."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pandas as pd

from focuscrawl.crawl.seeds import read_seeds
from focuscrawl.critic.loading import find_model
from focuscrawl.lab import true_harvest
from focuscrawl.lab.topic_tasks import Task
from focuscrawl.lab.true_harvest import harvest_grid, study_harvest
from focuscrawl.webs.synthetic import SyntheticWeb

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TOPIC = "/Sports/Cycling"


def test_crawls_are_judged_by_labels_and_by_a_critic_that_takes_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(true_harvest, "STRATEGIES", ("best-first",))
    labels = tmp_path / "labels.csv"
    with labels.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["url", "topic", "split"])
        rows.writerows(SyntheticWeb().labels())
    task = Task(
        kind="harvest",
        web="demo",
        recording="demo",
        critic="",
        topic=TOPIC,
        seeds=tuple(read_seeds(str(find_model("demo") / "seeds.csv"), (TOPIC,))),
        labels=str(labels),
        budget=40,
        folder="",
        phrase="road cycling, bicycle",
    )
    table = study_harvest(task)["harvest"]
    assert table["critic"].tolist() == ["words", "phrase and pages"]
    assert (table["fetches"] == 40).all()
    assert ((table["on"] + table["off"]) <= 40).all()
    assert (table["judged"] * 40 >= table["on"] * 0.8).all()  # the judge agrees with the labels
    assert table["judged"].between(0.2, 1.0).all()


def test_the_table_has_ratios_and_their_medians() -> None:
    rows = [
        (topic, strategy, critic, on, on / 100)
        for topic, times in (("/a", 2), ("/b", 3))
        for strategy in true_harvest.STRATEGIES
        for critic, on in (("words", 10), ("phrase and pages", 10 * times))
    ]
    table = pd.DataFrame(rows, columns=["topic", "strategy", "critic", "on", "judged"])
    grid = harvest_grid(table.assign(web="w"))
    assert grid.head[:4] == [
        "topic",
        "best-first: on, words",
        "best-first: on, phrase and pages",
        "best-first: on, ratio",
    ]
    assert grid.rows[0][:5] == ["/a", "10", "20", "2.00", "0.10"]
    assert grid.rows[2][:5] == ["median", "-", "-", "2.50", "-"]


def test_nothing_found_by_words_has_no_ratio() -> None:
    rows = [
        ("w", "/a", strategy, critic, on, 0.5)
        for strategy in true_harvest.STRATEGIES
        for critic, on in (("words", 0), ("phrase and pages", 5))
    ]
    columns = ["web", "topic", "strategy", "critic", "on", "judged"]
    grid = harvest_grid(pd.DataFrame(rows, columns=columns))
    assert grid.rows[0][3] == grid.rows[1][3] == "-"
    assert grid.rows[0][6] == "1.00"
