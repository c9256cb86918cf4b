from __future__ import annotations

from dataclasses import replace
from threading import Thread

import numpy as np
import pytest

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.evidence import RelevanceRates
from focuscrawl.apprentice.hashing import SparseRows
from focuscrawl.apprentice.lessons import drift
from focuscrawl.apprentice.link_table import LinkTable
from focuscrawl.apprentice.options import INPUTS, Options

from .toy_crawl import Crawl, Toy


def test_it_learns_which_links_to_follow() -> None:
    toy = Toy()
    crawl = Crawl(toy, Apprentice(Options(batch=10))).run(120)
    assert crawl.harvest > 0.8 > 2 * toy.good.mean() - 0.1
    assert crawl.apprentice.version == 12


@pytest.mark.parametrize("lag", [0, 5])
@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("stop", [5, 12, 37, 40, 43, 45])
def test_resumed_it_goes_on_as_if_nothing_had_happened(stop: int, slow: bool, lag: int) -> None:
    crawl = Crawl(Toy(), Apprentice(Options(batch=10)), lag=lag, slow=slow).run(stop)
    again = crawl.resumed(Apprentice(Options(batch=10)))
    assert again.queue == crawl.queue
    again.run(60 - stop)
    crawl.run(60 - stop)
    assert again.order == crawl.order
    assert again.queue == crawl.queue
    assert again.apprentice.version == crawl.apprentice.version


def test_a_lesson_is_about_what_was_known_when_it_began() -> None:
    quick, slow = (
        Crawl(Toy(), Apprentice(Options(batch=10)), lag=5, slow=slow).run(70)
        for slow in (False, True)
    )
    assert quick.order == slow.order
    assert quick.queue == slow.queue
    assert len(quick.lessons) == len(slow.lessons) == 6
    for one, other in zip(quick.lessons, slow.lessons, strict=True):
        assert one.metrics == other.metrics
        assert np.array_equal(one.scores, other.scores)
    at_once = Crawl(Toy(), Apprentice(Options(batch=10))).run(70)
    assert at_once.order != quick.order


def test_learning_does_not_disturb_what_goes_on_meanwhile() -> None:
    toy = Toy()
    crawl = Crawl(toy, Apprentice(Options(batch=10))).run(45)
    apprentice = crawl.apprentice
    urls, before = apprentice.rescore()
    lesson = []
    thread = Thread(target=lambda: lesson.append(apprentice.learn()))
    thread.start()
    thread.join()
    assert np.array_equal(apprentice.rescore()[1], before)
    u = int(urls[0])
    apprentice.observe(u, 1.0)
    apprentice.expand(u, toy.facts(u, apprentice.new(toy.targets[u])))
    late, scores = apprentice.adopt(lesson[0])
    assert late.tolist() == np.unique(toy.targets[u]).tolist()
    assert np.isfinite(scores).all()
    assert apprentice.version == 5


def test_a_warm_start_is_ahead() -> None:
    toy, other = Toy(seed=0), Toy(seed=1)
    exported = Crawl(toy, Apprentice(Options(batch=10))).run(200).apprentice.export()
    warm = Apprentice(Options(batch=10))
    warm.warm_start(exported)
    fresh = Crawl(other, Apprentice(Options(batch=10))).run(40).harvest
    assert Crawl(other, warm).run(40).harvest > fresh


def test_an_explanation_adds_up_to_the_score() -> None:
    apprentice = Crawl(Toy(), Apprentice(Options(batch=10))).run(60).apprentice
    lesson = apprentice.learn()
    apprentice.adopt(lesson)
    urls, scores = apprentice.rescore()
    parts = apprentice.scorer.explain(int(urls[3]))
    assert np.isclose(1 / (1 + np.exp(-sum(parts.values()))), scores[3])
    assert set(INPUTS) < set(parts)


def test_metrics_compare_predictions_with_what_came() -> None:
    crawl = Crawl(Toy(), Apprentice(Options(batch=10))).run(60)
    metrics = crawl.apprentice.learn().metrics
    auc, judged = metrics["auc"], metrics["judged"]
    assert not isinstance(auc, list)
    assert not isinstance(judged, list)
    assert 0.0 <= auc <= 1.0
    assert judged > 40


def test_the_scores_of_what_waits_are_compared_before_and_after_a_lesson() -> None:
    crawl = Crawl(Toy(), Apprentice(Options(batch=10))).run(49)
    before = crawl.apprentice.rescore()
    lesson = crawl.apprentice.learn()
    metrics = lesson.metrics
    assert lesson.urls.tolist() == before[0].tolist()
    assert metrics["waiting"] == len(lesson.urls)
    assert metrics["drift"] == pytest.approx(np.abs(lesson.scores - before[1]).mean())
    for name, scores in (("before", before[1]), ("after", lesson.scores)):
        bins = np.minimum((scores * 10).astype(int), 9)
        assert metrics[f"histogram_{name}"] == np.bincount(bins, minlength=10).tolist()


def test_drift() -> None:
    found = drift(np.array([0.0, 0.05, 0.95, 1.0]), np.array([0.1, 0.05, 0.45, 0.5]))
    assert found["drift"] == pytest.approx(1.1 / 4)
    assert found["histogram_before"] == [2, 0, 0, 0, 0, 0, 0, 0, 0, 2]
    assert found["histogram_after"] == [1, 1, 0, 0, 1, 1, 0, 0, 0, 0]
    assert drift(np.zeros(0), np.zeros(0)) == {}


def test_memory_is_bounded() -> None:
    crawl = Crawl(Toy(), Apprentice(Options(batch=10, memory=30))).run(80)
    assert crawl.apprentice.learn().instances == 30


def test_a_page_without_links_and_a_failed_seed_are_no_error() -> None:
    apprentice = Apprentice()
    apprentice.observe(3, 0.0)
    toy = Toy()
    facts = toy.facts(0, np.zeros(12, bool))
    none = np.zeros(0, np.int32)
    bare = replace(
        facts,
        targets=np.zeros(0, np.int64),
        reading=np.zeros(0, np.float32),
        links=SparseRows.empty(0),
        position=none,
    )
    link_scores, urls, scores = apprentice.expand(0, bare)
    assert not len(link_scores)
    assert not len(urls)
    assert not len(scores)
    assert not len(apprentice.rescore()[0])


def test_links_a_template_repeats_count_little_more_than_once() -> None:
    toy, known = Toy(), LinkTable()
    facts = toy.facts(0, np.ones(12, bool))
    for u in (0, 7, 14, 21):  # all on host 0
        known.add(u, replace(facts, own_keys=toy.keys[u : u + 1]))
    weight = known.weight.data.reshape(4, 12)
    assert np.allclose(weight[3], 0.5)
    known.add(1, replace(facts, own_keys=toy.keys[1:2]))
    assert np.allclose(known.weight.data[-12:], 1.0)


def test_rates_are_shrunk_to_those_of_the_larger_set() -> None:
    rates = RelevanceRates(weight=2.0)
    for _ in range(6):
        rates.observe(np.array([1, 2, 0], np.uint32), 1.0)
        rates.observe(np.array([1, 3, 0], np.uint32), 0.0)
    keys = np.array([[1, 2, 0], [1, 3, 0], [1, 4, 0], [9, 0, 0]], np.uint32)
    rate = rates.rates(keys)
    assert rate[0] > 0.8 > rate[2] > 0.2 > rate[1]
    again = RelevanceRates().set_state(rates.get_state())
    assert np.array_equal(again.rates(keys), rate)
