"""The study of critics from little: what is drawn, what is measured, what the table says."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from focuscrawl.webs.synthetic import SyntheticWeb
from studies import critics
from studies.critics import (
    study_critics,
)
from studies.topic_tasks import Task

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = "/Sports/Cycling"


@pytest.fixture
def labels(tmp_path: Path) -> str:
    path = tmp_path / "labels.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["url", "topic", "split"])
        rows.writerows(SyntheticWeb().labels())
    return str(path)


def test_every_critic_is_measured(labels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(critics, "DRAWS", 1)
    task = Task(
        kind="critics",
        web="demo",
        recording="demo",
        critic="",
        topic=TOPIC,
        seeds=(),
        labels=labels,
        budget=1,
        folder="",
    )
    table = study_critics(task)["critics"]
    assert not table.duplicated(["critic", "from", "draw"]).any()
    ap = {(row["critic"], row["from"]): row["ap"] for row in table.to_dict("records")}
    assert {critic for critic, _ in ap} == set(critics.CRITICS)
    for critic in critics.CRITICS[2:]:
        assert {(critic, of) for of in ("phrase", "3 good", "phrase, 3 good")} <= ap.keys()
        assert ap[critic, "phrase, 20 good"] > 0.8
    assert ap["discriminative", "all labels"] > 0.9
    assert ap["naive Bayes", "all labels"] > 0.9
