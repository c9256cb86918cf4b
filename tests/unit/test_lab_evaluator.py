"""A second opinion on what crawls fetched: labels that no critic learned from, a judge apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from focuscrawl.critic.critic_files import read_critic, save_critic
from focuscrawl.critic.training import train_critic
from focuscrawl.errors import UserError
from focuscrawl.lab.evaluator import Evaluator, create_evaluator
from focuscrawl.lab.results import FETCHES, collect_results
from focuscrawl.lab.study_report import mean_curves
from focuscrawl.taxonomy import Label
from focuscrawl.testing import TinyWeb
from unit.test_critic_training import WORDS, labelled, url_of
from unit.test_lab_results import BAD, BASE, COST, make_runs, study

BIRDS = "/Science/Birds"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))


def table(tmp_path: Path, labels: list[Label]) -> str:
    path = tmp_path / "labels.csv"
    path.write_text("url,topic,split\n" + "\n".join(",".join(label) for label in labels))
    return str(path)


def critic_of(tmp_path: Path, kind: str) -> str:
    web, labels = labelled(24)
    save_critic(train_critic(labels, web, kind=kind), tmp_path / kind)
    return str(tmp_path / kind)


@pytest.mark.parametrize(
    ("guide", "other"), [("flat", "discriminative"), ("discriminative", "flat")]
)
def test_the_judge_is_of_another_family_and_has_read_other_pages(
    tmp_path: Path, guide: str, other: str
) -> None:
    web, labels = labelled(24)
    critic = critic_of(tmp_path, guide)
    evaluator = create_evaluator(web, table(tmp_path, labels), critic=critic, judge=None)
    assert evaluator is not None
    (folder,) = (tmp_path / "cache" / "critics").iterdir()
    judge = read_critic(folder)[0]
    assert judge.model.kind == other
    tested = {(label.url, label.topic) for label in labels if label.split == "test"}
    assert set(judge.examples) == tested
    opinion = evaluator.evaluate(BIRDS, [url_of(topic, 5) for topic in WORDS])
    assert (opinion.judged > 0.5).tolist() == [True, False, False]
    assert np.isnan(opinion.labelled).all()  # the critic has learned from them


def test_labels_count_for_a_topic_and_all_below_it(tmp_path: Path) -> None:
    web, labels = labelled()
    evaluator = create_evaluator(
        web, table(tmp_path, labels), critic=critic_of(tmp_path, "flat"), judge=None
    )
    assert evaluator is not None
    urls = [url_of(topic, 3) for topic in WORDS]
    assert evaluator.evaluate(BIRDS, urls).labelled.tolist() == [1, 0, 0]
    above = evaluator.evaluate("/Science", urls)
    assert above.labelled.tolist() == [1, 1, 0]
    assert (above.judged > 0.5).tolist() == [True, True, False]


def test_what_is_no_page_is_not_relevant(tmp_path: Path) -> None:
    web, labels = labelled()
    judge = read_critic(critic_of(tmp_path, "flat"))[0].model
    web.put("http://example.com/list", "bird", content_type="application/pdf")
    evaluator = Evaluator(web, labels, judge)
    found = evaluator.evaluate(BIRDS, ["http://example.com/list", "http://example.com/none"])
    assert found.judged.tolist() == [0, 0]
    assert evaluator.evaluate(BIRDS, []).judged.shape == (0,)


def test_too_few_test_rows_make_no_evaluator(tmp_path: Path) -> None:
    web, labels = labelled()
    learned = [label for label in labels if label.split != "test"]
    critic = critic_of(tmp_path, "flat")
    assert create_evaluator(web, table(tmp_path, learned), critic=critic, judge=None) is None
    with pytest.raises(UserError, match="nowhere"):
        create_evaluator(web, table(tmp_path, labels), critic=critic, judge="nowhere")


def test_losses_leave_out_start_pages_and_count_what_was_not_fetched(tmp_path: Path) -> None:
    runs = make_runs(tmp_path / "out", study())
    on, off = (WORDS[topic] for topic in (BIRDS, "/Computers"))
    pages = {f"http://a.example/{i}": on if i != 1 else off for i in range(5)}
    labels = [Label("http://a.example/1", "/B", "test"), Label("http://a.example/3", "/A", "test")]
    web, rows = labelled()
    judge = train_critic([row._replace(topic=row.topic.replace(BIRDS, "/A")) for row in rows], web)
    evaluator = Evaluator(TinyWeb(pages), labels, judge.model)
    for run in runs:
        object.__setattr__(run, "seeds", ("http://a.example/0",))
        if run.contender.label != "no":
            run.record_done(COST)
    results = collect_results(study(), runs, tmp_path / "out", {}, {"w": evaluator})
    losses = {
        run.strategy: (run.judged_loss, run.labelled_loss, run.judged_off_topic)
        for run in results.runs.itertuples(index=False)
        if (run.topic, run.draw) == ("/A", 0)
    }
    assert losses[BASE][0] == pytest.approx(1 / 3, abs=0.02)  # of 1, 2, 3
    assert losses[BASE][1] == 0.5  # of 1 and 3
    assert losses[BASE][2] == pytest.approx(1 / 3)
    assert losses[BAD][2] == 1.0
    assert losses[BAD][0] == pytest.approx(1.0, abs=0.02)  # 1 of three was fetched
    table = pq.read_table(results.folder / FETCHES, columns=["judged", "labelled"]).to_pandas()
    assert table["judged"].notna().all()
    curve = mean_curves(results, "w", "judged")["/A"][BASE]
    assert curve[-1] == pytest.approx(1 / 3, abs=0.02)  # the pictures say the same
    assert curve[0] == pytest.approx(1.0, abs=0.02)  # 1, not the start page
