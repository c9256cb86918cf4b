"""The studies of feedback and of authorities from disjoint seeds."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from focuscrawl.crawl.scope import read_seeds
from focuscrawl.critic.critic_files import find_model
from focuscrawl.report.figures import png
from focuscrawl.webs.synthetic import SyntheticWeb
from studies import feedback, knowledge_bases
from studies.authorities import study_agreement
from studies.feedback import study_feedback
from studies.knowledge_bases import CONTENDERS, FIRST, bases_table, study_bases
from studies.page_figures import agreement_table, draw_agreement
from studies.topic_tasks import Task

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = "/Sports/Cycling"


@pytest.fixture
def task(tmp_path: Path) -> Task:
    labels = tmp_path / "labels.csv"
    with labels.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["url", "topic", "split"])
        rows.writerows(SyntheticWeb().labels())
    return Task(
        kind="feedback",
        web="demo",
        recording="demo",
        critic="models/demo",
        topic=TOPIC,
        seeds=tuple(read_seeds(str(find_model("demo") / "seeds.csv"), (TOPIC,))),
        labels=str(labels),
        budget=40,
        folder=str(tmp_path / "feedback"),
    )


def test_judgements_are_the_labels_and_the_halves_are_measured_alike(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback, "DRAWS", 1)
    monkeypatch.setattr(feedback, "STRATEGIES", ("best-first",))
    monkeypatch.setattr(feedback, "JUDGEMENTS", 6)
    (row,) = study_feedback(task)["feedback"].to_dict("records")
    assert (row["draw"], row["strategy"], row["judged"]) == (0, "best-first", 6)
    assert 0 <= row["good"] <= 6
    for when in ("before", "after"):
        for measure in ("precision", "recall", "harvest"):
            assert 0.0 <= row[f"{measure}_{when}"] <= 1.0, (measure, when)
    assert row["copies"] >= 0
    # the pages of a topic here are on sites of their own: twenty of them are enough
    assert row["harvest_without"] <= 1.0


def test_crawls_from_disjoint_seeds_are_compared(task: Task) -> None:
    tables = study_agreement(task)
    table, shared, promised = (tables[name] for name in ("agreement", "shared", "unvisited"))
    assert set(table["of"]) == {"pages", "hosts"}
    assert table["overlap"].between(0, 1).all()
    assert table["fetched"].between(0, 1).all()
    assert table["pair"].nunique() == 5
    pd.testing.assert_frame_equal(study_agreement(task)["agreement"], table)
    drawn = agreement_table(table.assign(web="demo", topic=TOPIC))
    assert png(draw_agreement(drawn)).startswith(b"\x89PNG")
    assert shared[["urls", "servers", "servers_on"]].to_numpy().min() >= 0.0
    last = shared[shared["fetches"] == shared["fetches"].max()]
    assert (last["servers"] >= last["urls"]).all()  # of one host crawls fetch other pages
    assert len(promised) >= 2 * table["pair"].nunique()
    assert (promised["cited"] <= promised["waiting"]).all()


def test_each_base_of_the_knowledge_is_tried_alone(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = [each for each in CONTENDERS if each.label in ("2: alone", "2: all three")]
    monkeypatch.setattr(knowledge_bases, "CONTENDERS", (FIRST, *tried))
    table = study_bases(task)["bases"].set_index("label")
    assert (table["fetches"] == task.budget).all()
    assert table["harvest"].between(0, 1).all()
    assert np.isnan(table["new"][FIRST.label])
    assert table["new"].drop(FIRST.label).between(0, 1).all()
    named = table.reset_index().assign(web="demo", topic=TOPIC)
    named = pd.concat([named, named.assign(label="1: words of the name", new=np.nan).iloc[:1]])
    above = bases_table(named).set_index("label")["above"]
    assert above["2: alone"] == 0
