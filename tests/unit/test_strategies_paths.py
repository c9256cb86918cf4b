"""The strategies that learn from paths: on graphs small enough for paper, and on a small web."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.hashing import SparseRows, row_pointers
from focuscrawl.lab.strategies.batch_learners import (
    FAR,
    ContextGraphs,
    HashedNaiveBayes,
    Intelligent,
    click_distances,
    softmax,
)
from focuscrawl.lab.strategies.q_values import QValues, bin_values, discounted_rewards
from focuscrawl.strategies import Strategy, StrategyContext
from focuscrawl.strategies.baselines import BestFirst
from focuscrawl.strategies.rescoring import LinkHistory, PathFeatures
from focuscrawl.testing import KeywordCritic, SimulatedCrawl, TinyWeb

LEARNERS = [Intelligent, ContextGraphs, QValues]


CRITIC = KeywordCritic("jazz", high=1.0, low=0.0, classes=("/Jazz", "/Other"))
CONTEXT = StrategyContext(critic=CRITIC, random_state=0, web=None)


def house() -> dict[str, str]:
    """Thirty rooms: behind a shelf are boxes, behind a box jazz; desk and drawer hold nothing."""
    rooms = [f"shelf{i}" if i % 5 == 2 else f"desk{i}" for i in range(30)]
    pages = {"": "the house " + anchors(rooms)}
    for room in rooms:
        jazz = room.startswith("shelf")
        holders = [f"{'box' if jazz else 'drawer'}{room}-{i}" for i in range(3)]
        pages[room] = f"a {'shelf of wood' if jazz else 'desk of steel'} {anchors(holders)}"
        for holder in holders:
            sheets = [f"{'record' if jazz else 'bill'}{holder}-{i}" for i in range(2)]
            kind = "box made of cardboard" if jazz else "drawer with a lock"
            pages[holder] = f"{kind} {anchors([*sheets, ''])}"
            pages |= dict.fromkeys(sheets, "jazz on record" if jazz else "money to pay")
    return {name: f"<body><p>{text}</p><!--{name}--></body>" for name, text in pages.items()}


def anchors(names: Sequence[str]) -> str:
    return " ".join(f'<li><a href="/{name}">{name.rstrip("-0123456789")}</a>' for name in names)


HOUSE = TinyWeb({f"http://house.example/{name}": body for name, body in house().items()})
#: a path
SEEDS = [
    f"http://house.example/{name}" for name in ("", "shelf2", "boxshelf2-0", "recordboxshelf2-0-0")
]


def crawl(strategy: Strategy) -> SimulatedCrawl:
    return SimulatedCrawl(strategy, HOUSE, SEEDS, critic=CRITIC)


def relevant(crawl: SimulatedCrawl) -> int:
    return sum("/record" in url for url in crawl.order)


@pytest.mark.parametrize("strategy", LEARNERS)
def test_it_learns_to_go_through_pages_that_are_not_relevant(
    strategy: Callable[..., Any],
) -> None:
    learning = crawl(strategy(CONTEXT, batch=10)).run(70)
    assert learning.strategy.learns
    assert learning.strategy.model_version >= 2
    assert relevant(learning) > 3 * relevant(crawl(BestFirst(CONTEXT)).run(70))


def test_distances_are_clicks_to_the_nearest_goal() -> None:
    #  0 -> 1 -> 2 -> 3*   0 -> 4 -> 3   5 -> 0   3 -> 6
    source, target = np.array([[0, 1], [1, 2], [2, 3], [0, 4], [4, 3], [5, 0], [3, 6]]).T
    goals = np.arange(7) == 3
    found = click_distances(source, target, goals, limit=5)
    assert found.tolist() == [2, 2, 1, 0, 1, 3, FAR]
    assert click_distances(source, target, goals, limit=2).tolist() == [2, 2, 1, 0, 1, FAR, FAR]


GRAPHS = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), min_size=1, max_size=40)


@settings(max_examples=50, deadline=None)
@given(GRAPHS, st.lists(st.sampled_from([0.0, 0.3, 0.6, 1.0, np.nan]), min_size=12, max_size=12))
def test_rewards_are_at_least_the_page_and_at_most_all_that_is_behind(
    links: list[tuple[int, int]], relevance: list[float]
) -> None:
    source, target = np.array(links).T
    y = np.array(relevance)
    source, target = source[~np.isnan(y[source])], target[~np.isnan(y[source])]
    wanted = np.flatnonzero(~np.isnan(y))
    values = discounted_rewards(source, target, y, wanted, gamma=0.5)
    own = np.where(y[wanted] > 0.5, y[wanted], 0.0)
    rewards = y[wanted][y[wanted] > 0.5].tolist()
    best = sum(r * 0.5**t for t, r in enumerate(sorted(rewards, reverse=True)))
    assert (values >= own).all()
    assert (values <= best + 1e-12).all()
    away = click_distances(source, target, np.nan_to_num(y) > 0.5, limit=6)
    assert ((values > 0) == (away[wanted] < FAR)).all()


def test_rewards_are_collected_nearest_first_and_discounted() -> None:
    #  0 -> 1 -> {2: 0.8, 3: 1.0}   2 -> 4: 0   4 -> 5: 1.0   3 -> 0
    source, target = np.array([[0, 1], [1, 2], [1, 3], [2, 4], [4, 5], [3, 0]]).T
    y = np.array([0.0, 0.2, 0.8, 1.0, 0.4, 1.0])
    values = discounted_rewards(source, target, y, np.arange(6), gamma=0.5)
    # from 1: 1 (0), 3 (1), 2 (0.8), then 4 (0) which is nearer to a goal than 0, 5 (1)
    assert values[1] == pytest.approx(1 / 2 + 0.8 / 4 + 1 / 16)
    assert values[0] == pytest.approx(values[1] / 2)
    assert values[5] == 1.0
    assert values[4] == pytest.approx(1 / 2)
    assert values[2] == pytest.approx(0.8 + 1 / 4)
    # from 3: back to 0 and on to 1 for 2 (3 is fetched already), 4, 5
    assert values[3] == pytest.approx(1 + 0.8 / 8 + 1 / 32)


def test_bins_keep_zero_apart_and_share_the_rest() -> None:
    labels, means = bin_values(np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.0]), 3)
    assert labels.tolist() == [0, 1, 1, 2, 2, 0]
    assert means == pytest.approx([0.0, 0.15, 0.35])
    labels, means = bin_values(np.zeros(3), 4)
    assert labels.tolist() == [0, 0, 0]
    assert means.tolist() == [0.0]


def rows(*texts: list[int]) -> SparseRows:
    lengths = np.array([len(text) for text in texts], np.int64)
    return SparseRows(
        np.array([word for text in texts for word in text], np.int32), row_pointers(lengths)
    )


def test_naive_bayes_of_several_classes_by_hand() -> None:
    classes = HashedNaiveBayes(rows([1, 2], [1], [3]), np.array([0, 0, 1]), 2, length=99)
    likelihood = classes.log_likelihood(rows([1, 3, 77]))  # 77 was never seen
    # theta: (1 + n(c, t)) / (3 words + n(c))
    assert np.exp(likelihood[0]) == pytest.approx([3 / 6 * 1 / 6, 1 / 4 * 2 / 4])
    assert classes.posterior(np.zeros((1, 2)))[0] == pytest.approx([2 / 3, 1 / 3])
    short = HashedNaiveBayes(rows([1, 2], [1], [3]), np.array([0, 0, 1]), 2, length=1)
    assert short.log_likelihood(rows([1, 3])) * 2 == pytest.approx(likelihood)
    assert classes.log_likelihood(rows([], [77])).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert softmax(np.array([[-900.0, -900.0]])).tolist() == [[0.5, 0.5]]


def page_of(targets: list[int], *words: int) -> PathFeatures:
    none = SparseRows(np.zeros(0, np.int32), np.zeros(len(targets) + 1, np.int64))
    return PathFeatures(np.array(targets, np.int64), np.array(words, np.int32), none)


def test_interest_ratios_by_hand() -> None:
    crawled = LinkHistory()
    crawled.observe(0, 1.0)
    crawled.add(0, page_of([2, 3, 4, 5, 10, 10], 7))  # relevant, leads to relevant pages
    crawled.observe(1, 0.0)
    crawled.add(1, page_of([6, 7, 8, 9, 11], 8))  # neither
    for url in range(2, 10):
        crawled.observe(url, float(url < 6))
    past = crawled.snapshot_at(10, 2)
    assert past.queued.tolist() == [10, 11]
    model = Intelligent(CONTEXT).fit(past)
    assert model.base == 0.5
    # four of four, half of them expected, and one more case like all; two deviations away
    assert np.exp(model.words[[7, 8]]) == pytest.approx([4.5 / 5 / 0.5, 0.5 / 5 / 0.5])
    assert np.exp(model.sources) == pytest.approx([0.2, 1.8])
    links = np.flatnonzero(past.target >= 10)
    evidence = model.evidence(past, links)
    assert not evidence[1].any()  # a page's second link to a URL
    good, bad = np.exp(model.logs(evidence[[0, 2]]))
    assert good == pytest.approx([1.8, 1.0, 1.8, (4 + 1) / (2 + 1)])
    assert bad == pytest.approx([0.2, 1.0, 0.2, 1 / (2 + 1)])
    scores = model.scores(np.array([10, 11]), evidence[[0, 2]])
    assert scores[0] > 0 > scores[1]


def test_layers_order_pages_by_their_distance() -> None:
    crawled = LinkHistory()
    url = 0
    for _ in range(6):  # 20 -> 21 -> 22*, and 23 that leads nowhere
        for offset, word in enumerate([1, 2, 3, 4]):
            crawled.observe(url + offset, float(offset == 2))
            next_one = [url + offset + 1] if offset < 2 else []
            crawled.add(url + offset, page_of([*next_one, 90 + offset], word, word + 10))
        url += 4
    model = ContextGraphs(CONTEXT, layers=3, threshold=0.4).fit(crawled.latest_snapshot())
    assert model.metrics == {"layer_0": 6.0, "layer_1": 6.0, "layer_2": 6.0}
    for number, words in enumerate([(3, 13), (2, 12), (1, 11), (4, 14), (70, 71)]):
        crawled.observe(50 + number, 0.0)
        crawled.add(50 + number, page_of([60 + number], *words))
    past = crawled.latest_snapshot()
    rank = model.evidence(past, np.flatnonzero((past.target >= 60) & (past.target < 70)))[:, 0]
    assert np.floor(rank).tolist() == [3, 2, 1, 0, 0]
    assert rank[3] == 0.0  # looks like what leads nowhere
    assert rank[4] == 0.0  # looks like nothing
