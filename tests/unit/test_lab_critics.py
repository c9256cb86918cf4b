"""The study of critics from little: what is drawn, what is measured, what the table says."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from focuscrawl.errors import UserError
from focuscrawl.lab import critics
from focuscrawl.lab.critics import measures, phrase_of, study_critics
from focuscrawl.lab.critics_table import critics_grid
from focuscrawl.lab.labelled_pages import by_share, read_labelled
from focuscrawl.lab.topic_tasks import Task
from focuscrawl.taxonomy import Label, read_labels
from focuscrawl.webs.synthetic import SyntheticWeb

TOPIC = "/Sports/Cycling"


@pytest.fixture
def labels(tmp_path: Path) -> str:
    path = tmp_path / "labels.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["url", "topic", "split"])
        rows.writerows(SyntheticWeb().labels())
    return str(path)


def test_every_topic_keeps_its_share() -> None:
    pages = [("/a", f"a{i}") for i in range(600)] + [("/b", f"b{i}") for i in range(200)]
    drawn = by_share(pages, 100)
    assert Counter(topic for topic, _ in drawn) == {"/a": 75, "/b": 25}
    assert len(set(drawn)) == 100
    assert by_share(pages, 100) == drawn
    assert by_share(pages, 800) == pages
    urls = [int(url[1:]) for topic, url in drawn if topic == "/a"]
    assert urls != sorted(urls)  # not those of the first sites of the table


def test_pages_tested_are_not_learned_from(labels: str) -> None:
    pages = read_labelled("demo", labels, 2)
    assert len(pages.unlabelled) == 2
    tested = {tuple(sorted(bag.items())) for bag in pages.tested}
    for bag in [*pages.unlabelled[0], *pages.unlabelled[1], *(bag for _, bag in pages.train)]:
        assert tuple(sorted(bag.items())) not in tested
    assert pages.truth(TOPIC).sum() == sum(topic == TOPIC for topic, _ in pages.test)


def test_without_a_page_to_test_on_nothing_is_read(labels: str, tmp_path: Path) -> None:
    learned = tmp_path / "train.csv"
    learned.write_text(Path(labels).read_text(encoding="utf-8").replace(",test", ",train"))
    with pytest.raises(UserError, match="has test in the column split"):
        read_labelled("demo", str(learned), 1)


def test_one_university_of_webkb_is_for_testing(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.csv"
    theirs.write_text(
        "url,page_class,university\n"
        'http://a.example/x,faculty,wisconsin\n"http://b.example/x,y",other,misc\n'
    )
    script = Path(__file__).parents[2] / "studies" / "webkb_labels.py"
    said = subprocess.run(
        [sys.executable, script, theirs], check=True, capture_output=True, text=True
    ).stdout
    (tmp_path / "ours.csv").write_text(said)
    assert read_labels(tmp_path / "ours.csv") == [
        Label("http://a.example/x", "/faculty", "test"),
        Label("http://b.example/x,y", "/other", "train"),
    ]


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


def test_measures_of_relevance() -> None:
    truth = np.array([True, True, False, False])
    found = measures(np.array([0.9, 0.4, 0.6, 0.1]), truth)
    assert (found["precision"], found["recall"], found["f1"]) == (0.5, 0.5, 0.5)
    assert found["ap"] == pytest.approx((1 + 2 / 3) / 2)
    assert np.isnan(measures(np.zeros(4), truth)["precision"])


def test_the_table_has_means_of_topics_side_by_side() -> None:
    names = ["ap", "best_f1", "f1", "precision", "recall", "ece"]
    rows = [
        ("w", "/a", "naive Bayes", "3 good, 3 bad", 0, 0.0),
        ("w", "/a", "naive Bayes", "3 good, 3 bad", 1, 0.5),
        ("w", "/b", "naive Bayes", "3 good, 3 bad", 0, 0.75),
        ("w", "/a", "words", "phrase", 0, 1.0),
        ("v", "/a", "words", "phrase", 0, 0.125),
    ]
    table = pd.DataFrame(rows, columns=["web", "topic", "critic", "from", "draw", "ap"])
    for name in names[1:]:
        table[name] = table["ap"]
    grid = critics_grid(table)
    assert grid.head[:3] == ["critic", "learned from", "w AP"]
    assert [head.split()[0] for head in grid.head[2:]] == ["w"] * 5 + ["v"] * 5
    assert grid.rows[0][:3] == ["words", "phrase", "1.00"]
    assert grid.rows[1][:3] == ["naive Bayes", "3 good, 3 bad", ".50"]  # topics weigh the same
    assert grid.rows[0][-1] == ".12"
    assert grid.rows[1][-1] == "-"


def test_a_topic_is_a_phrase() -> None:
    assert phrase_of("/Arts/Performing_Arts") == "performing arts"
    assert phrase_of("/Computers/Operating_Systems/Other") == "operating systems"
