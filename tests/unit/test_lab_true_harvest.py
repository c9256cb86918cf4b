"""The study of true harvest: a critic is not asked what its own crawl is worth."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pandas as pd

from focuscrawl.crawl.seeds import read_seeds
from focuscrawl.critic.loading import find_model
from focuscrawl.lab import true_harvest
from focuscrawl.lab.topic_tasks import Task
from focuscrawl.lab.true_harvest import harvest_grid, start_pages, study_harvest
from focuscrawl.taxonomy import read_labels
from focuscrawl.webs.synthetic import SyntheticWeb

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TOPIC = "/Sports/Cycling"


def test_crawls_are_judged_by_labels_and_by_a_critic_that_takes_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(true_harvest, "STRATEGIES", ("best-first",))
    monkeypatch.setattr(true_harvest, "DRAWS", 1)
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
    assert table["critic"].tolist() == list(true_harvest.CRITICS)
    assert (table["fetches"] == 40).all()
    assert ((table["on"] + table["off"]) <= 40).all()
    assert (table["judged"] * 40 >= table["on"] * 0.8).all()  # the judge agrees with the labels
    assert table["judged"].between(0.2, 1.0).all()


def test_start_pages_of_a_later_draw_are_labelled_pages_of_the_topic(tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    with labels.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("url", "topic", "split"), *SyntheticWeb().labels()])
    seeds = ("http://seed.example/",)
    task = Task("harvest", "demo", "demo", "", TOPIC, seeds, str(labels), 1, "")
    assert start_pages(task, SyntheticWeb(), 0) == seeds
    on = {row.url for row in read_labels(labels) if row.topic == TOPIC and row.split != "test"}
    for draw in (1, 2):
        assert set(start_pages(task, SyntheticWeb(), draw)) < on
    assert start_pages(task, SyntheticWeb(), 1) != start_pages(task, SyntheticWeb(), 2)


def test_the_table_has_ratios_and_their_medians_for_each_web() -> None:
    rows = [
        (web, topic, draw, strategy, critic, on, on / 100)
        for web in ("v", "w")
        for topic, times in (("/a", 2), ("/b", 3))
        for draw in range(2)
        for strategy in true_harvest.STRATEGIES
        for critic, on in zip(true_harvest.CRITICS, (10, 10 * times, 50), strict=True)
    ]
    columns = ["web", "topic", "draw", "strategy", "critic", "on", "judged"]
    grid = harvest_grid(pd.DataFrame(rows, columns=columns))
    assert grid.head[:6] == [
        "web",
        "topic",
        "best-first: on, words",
        "best-first: on, phrase and pages",
        "best-first: on, all labels",
        "best-first: on, ratio",
    ]
    assert grid.rows[0][:7] == ["v", "/a", "10", "20", "50", "2.00", "0.10"]
    assert grid.rows[0][grid.head.index("best-first: judged, most")] == "10.00"
    assert [row[:2] for row in grid.rows[2:5]] == [["v", "median"], ["v", "mean"], ["w", "/a"]]
    assert grid.rows[2][5] == "2.50"
    assert grid.rows[3][2:6] == ["10", "25", "50", "-"]  # a mean of ratios says nothing


def test_nothing_found_by_words_has_no_ratio() -> None:
    rows = [
        ("w", "/a", strategy, critic, on, 0.5)
        for strategy in true_harvest.STRATEGIES
        for critic, on in zip(true_harvest.CRITICS, (0, 5, 5), strict=True)
    ]
    columns = ["web", "topic", "strategy", "critic", "on", "judged"]
    grid = harvest_grid(pd.DataFrame(rows, columns=columns))
    ratio = grid.head.index("best-first: on, ratio")
    assert grid.rows[0][ratio] == grid.rows[1][ratio] == "-"
    assert grid.rows[0][grid.head.index("best-first: judged, ratio")] == "1.00"
