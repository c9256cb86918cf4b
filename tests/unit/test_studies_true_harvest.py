"""The study of true harvest: a critic is not asked what its own crawl is worth."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from focuscrawl.crawl.scope import read_seeds
from focuscrawl.critic.critic_files import find_model
from focuscrawl.webs.synthetic import SyntheticWeb
from studies import critics
from studies.critics import study_harvest
from studies.topic_tasks import Task

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TOPIC = "/Sports/Cycling"


def test_crawls_are_judged_by_labels_and_by_a_critic_that_takes_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(critics, "STRATEGIES", ("best-first",))
    monkeypatch.setattr(critics, "CRAWL_DRAWS", 1)
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
    assert table["critic"].tolist() == list(critics.CRAWL_CRITICS)
    assert (table["fetches"] == 40).all()
    assert ((table["on"] + table["off"]) <= 40).all()
    assert (table["judged"] * 40 >= table["on"] * 0.8).all()  # the judge agrees with the labels
    assert table["judged"].between(0.2, 1.0).all()
