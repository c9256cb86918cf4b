from __future__ import annotations

from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING

import numpy as np
import pytest

from focuscrawl.apprentice.addresses import table_of_keys
from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.facts import PageFacts, pack_words
from focuscrawl.apprentice.inputs import INPUTS
from focuscrawl.apprentice.known import Known
from focuscrawl.apprentice.options import Options
from focuscrawl.apprentice.rates import Rates

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Toy:
    """A web of numbered pages: links whose feature is 1 lead to relevant pages."""

    def __init__(self, n: int = 400, out: int = 12, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.good = rng.random(n) < 0.4
        self.targets = rng.integers(0, n, (n, out))
        self.noise = rng.integers(10, 200, (n, out))
        self.urls = [f"http://h{i % 7}.example/d{i % 5}/page{i}.html" for i in range(n)]
        self.keys = table_of_keys(self.urls)

    def facts(self, u: int, new: NDArray[np.bool_]) -> PageFacts:
        targets = self.targets[u].astype(np.int64)
        fresh = np.unique(targets[new])
        hint = np.where(self.good[targets], 1, 2)
        n = len(targets)
        return PageFacts(
            relevance=np.array([float(self.good[u])]),
            own_keys=self.keys[u : u + 1],
            page_indices=np.array([u % 3], np.int32),
            targets=targets,
            position=np.arange(n, dtype=np.int32),
            reading=np.zeros(n, np.float32),
            link_indices=np.column_stack([hint, self.noise[u]]).ravel().astype(np.int32),
            link_lengths=np.full(n, 2, np.int32),
            new=fresh,
            url_indices=(fresh % 50).astype(np.int32),
            url_lengths=np.ones(len(fresh), np.int32),
            url_keys=self.keys[fresh],
            vocabulary=pack_words([]),
        )


class Crawl:
    """The crawl's part of the loop, one request at a time."""

    def __init__(self, toy: Toy, apprentice: Apprentice) -> None:
        self.toy, self.apprentice = toy, apprentice
        self.queue: dict[int, float] = {0: 9.0, 1: 9.0}
        self.order: list[int] = []
        self.memos: list[bytes] = []
        self.state: bytes | None = None

    def run(self, fetches: int) -> Crawl:
        for _ in range(fetches):
            u = max(self.queue, key=lambda url: (self.queue[url], -url))
            del self.queue[u]
            self.order.append(u)
            self.apprentice.observe(u, float(self.toy.good[u]))
            facts = self.toy.facts(u, self.apprentice.new(self.toy.targets[u]))
            self.memos.append(facts.to_bytes())
            self.take(*self.apprentice.expand(u, facts)[1:])
            if self.apprentice.lesson_due():
                taught = self.apprentice.learn()
                self.take(taught.urls, taught.scores)
                self.take(*self.apprentice.adopt(taught))
                self.state = self.apprentice.state(taught)
        return self

    def take(self, urls: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        done = set(self.order)
        for url, score in zip(urls.tolist(), scores.tolist(), strict=True):
            if url not in done:
                self.queue[url] = score

    @property
    def harvest(self) -> float:
        return float(self.toy.good[self.order].mean())


def test_it_learns_which_links_to_follow() -> None:
    toy = Toy()
    crawl = Crawl(toy, Apprentice(Options(batch=10))).run(120)
    assert crawl.harvest > 0.8 > 2 * toy.good.mean() - 0.1
    assert crawl.apprentice.version == 12


@pytest.mark.parametrize("stop", [37, 40, 61])
def test_resumed_it_goes_on_as_if_nothing_had_happened(stop: int) -> None:
    toy = Toy()
    whole = Crawl(toy, Apprentice(Options(batch=10))).run(100)
    begun = Crawl(toy, Apprentice(Options(batch=10))).run(stop)
    again = Crawl(toy, Apprentice(Options(batch=10)))
    assert begun.state is not None
    again.apprentice.load(begun.state)
    for u, memo in zip(begun.order, begun.memos, strict=True):
        again.apprentice.observe(u, float(toy.good[u]))
        again.apprentice.expand(u, PageFacts.from_bytes(memo))
    again.order = list(begun.order)
    again.queue = {}
    again.take(*again.apprentice.rescore())
    waiting = {u: s for u, s in begun.queue.items() if s != 9.0}
    assert again.queue.keys() == waiting.keys()
    again.run(100 - stop)
    assert again.order == whole.order


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


def test_a_graduate_starts_ahead() -> None:
    toy, other = Toy(seed=0), Toy(seed=1)
    graduate = Crawl(toy, Apprentice(Options(batch=10))).run(200).apprentice.graduate()
    taught = Apprentice(Options(batch=10))
    taught.begin_with(graduate)
    fresh = Crawl(other, Apprentice(Options(batch=10))).run(40).harvest
    assert Crawl(other, taught).run(40).harvest > fresh


def test_an_explanation_adds_up_to_the_score() -> None:
    apprentice = Crawl(Toy(), Apprentice(Options(batch=10))).run(60).apprentice
    taught = apprentice.learn()
    apprentice.adopt(taught)
    urls, scores = apprentice.rescore()
    parts = apprentice.explain(int(urls[3]))
    assert np.isclose(1 / (1 + np.exp(-sum(parts.values()))), scores[3])
    assert set(INPUTS) < set(parts)


def test_metrics_compare_predictions_with_what_came() -> None:
    crawl = Crawl(Toy(), Apprentice(Options(batch=10))).run(60)
    metrics = crawl.apprentice.learn().metrics
    assert 0.0 <= metrics["auc"] <= 1.0
    assert metrics["judged"] > 40


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
        link_indices=none,
        link_lengths=none,
        position=none,
    )
    link_scores, urls, scores = apprentice.expand(0, bare)
    assert not len(link_scores)
    assert not len(urls)
    assert not len(scores)
    assert not len(apprentice.rescore()[0])


def test_links_a_template_repeats_count_little_more_than_once() -> None:
    toy, known = Toy(), Known()
    facts = toy.facts(0, np.ones(12, bool))
    for u in (0, 7, 14, 21):  # all on host 0
        known.add(u, replace(facts, own_keys=toy.keys[u : u + 1]))
    weight = known.weight.data.reshape(4, 12)
    assert np.allclose(weight[3], 0.5)
    known.add(1, replace(facts, own_keys=toy.keys[1:2]))
    assert np.allclose(known.weight.data[-12:], 1.0)


def test_rates_are_shrunk_to_those_of_the_larger_set() -> None:
    rates = Rates(weight=2.0)
    for _ in range(6):
        rates.observe(np.array([1, 2, 0], np.uint32), 1.0)
        rates.observe(np.array([1, 3, 0], np.uint32), 0.0)
    keys = np.array([[1, 2, 0], [1, 3, 0], [1, 4, 0], [9, 0, 0]], np.uint32)
    rate, count = rates.rates(keys)
    assert rate[0] > 0.8 > rate[2] > 0.2 > rate[1]
    assert count.tolist() == [6.0, 6.0, 0.0, 0.0]
    again = Rates().set_state(rates.get_state())
    assert np.array_equal(again.rates(keys)[0], rate)
