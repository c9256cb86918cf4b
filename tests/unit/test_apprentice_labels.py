"""Labels of fetched URLs: relevance, its grades, and rewards along the paths of a crawl."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.hashing import SparseRows
from focuscrawl.apprentice.labels import GradedLabels, Labels, TunnelRewards
from focuscrawl.apprentice.options import Options

from .toy_crawl import Toy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.link_table import PageFeatures

RELEVANCE = st.floats(0.0, 1.0)
#: as naive Bayes has it: the heart of a topic, its edge, and beyond
HEART, EDGE, BEYOND = 1.0 - 1e-13, 0.9, 1e-9


def grades(*judged: float) -> GradedLabels:
    found = GradedLabels()
    for relevance in judged:
        found.observe(relevance)
    return found


@settings(max_examples=50, deadline=None)
@given(st.lists(RELEVANCE, max_size=20), st.lists(RELEVANCE, min_size=2, max_size=20))
def test_grades_keep_the_order_and_the_middle(judged: list[float], asked: list[float]) -> None:
    relevance = np.sort(np.array(asked))
    graded = grades(*judged).grade(relevance)
    assert np.all(np.diff(graded) >= 0.0)
    assert np.all((graded >= 0.0) & (graded <= 1.0))
    assert np.all(graded[relevance < 0.5] <= 0.5)
    assert np.all(graded[relevance > 0.5] >= 0.5)
    assert grades(*judged).grade(np.array([0.0, 0.5, 1.0])).tolist() == [0.0, 0.5, 1.0]


def test_a_critic_is_graded_on_its_own_scale() -> None:
    asked = np.array([0.1, 0.9, 0.99, 1.0 - 1e-9])
    modest = grades(*[0.9, 0.1, 0.8, 0.3] * 5).grade(asked)
    sure = grades(*[1.0, 1e-30, 1.0 - 1e-14] * 5).grade(asked)
    assert modest == pytest.approx([0.261, 0.739, 1.0, 1.0], abs=0.001)
    assert sure == pytest.approx([0.4695, 0.5305, 0.5638, 0.7878], abs=0.0005)


def test_what_brought_no_page_says_nothing_of_the_critic() -> None:
    assert grades(0.9, 0.0, 0.0).scale == grades(0.9).scale == grades().scale
    assert grades(1.0).scale == grades(1.0, 1e-300).scale > grades(1.0, *[0.9] * 9).scale


def values_of(options: Options, relevance: list[float]) -> tuple[list[float], list[float]]:
    values = Labels(options)
    for url, each in enumerate(relevance):
        values.observe(url, each)
    own, value = values.label(np.arange(len(relevance)), np.array(relevance))
    return own.tolist(), value.tolist()


@pytest.mark.parametrize("tunnel", [True, False])
def test_near_misses_count_while_there_are_no_misses(tunnel: bool) -> None:
    options = Options(tunnel=tunnel)
    _, value = values_of(options, [HEART] * 50 + [EDGE] * 50)
    assert value[0] > 0.9
    assert 0.5 < value[-1] < 0.6
    # one in twenty: half and half
    _, value = values_of(options, [HEART] * 50 + [BEYOND] * 5 + [EDGE] * 45)
    assert 0.70 < value[-1] < 0.75
    # one in ten: as it is
    judged = [HEART] * 50 + [BEYOND] * 10 + [EDGE] * 40
    assert values_of(options, judged) == (judged, judged)
    assert values_of(options, []) == ([], [])
    # and it can be switched off
    judged = [HEART] * 50 + [EDGE] * 50
    assert values_of(replace(options, graded=False), judged) == (judged, judged)


def test_what_a_page_opened_counts_by_its_grades() -> None:
    def opened(child: float) -> float:
        values = Labels(Options())
        values.add_links(np.zeros(8, np.int64), np.arange(1, 9), 100)
        relevance = [1e-4, *[child] * 8, *[HEART] * 91]
        for url, each in enumerate(relevance):
            values.observe(url, each)
        own, value = values.label(np.arange(100), np.array(relevance))
        assert own[0] < 0.45
        return float(value[0])

    # 8 of 9 and the doubt; those at the edge count as little more than half
    assert opened(HEART) == pytest.approx(8.0 / 11.0, abs=0.05)
    assert 0.45 < opened(EDGE) < 0.58 < 7.2 / 11.0


class Edge(Toy):
    """A toy where every page is relevant, those of odd numbers only just; a URL shows which."""

    def __init__(self) -> None:
        super().__init__(n=900, out=6)
        self.odd = np.arange(900) % 2 == 1
        self.relevance = np.where(self.odd, EDGE, HEART)
        self.good[:] = True

    def features(self, u: int, new: NDArray[np.bool_]) -> PageFeatures:
        features = super().features(u, new)
        kinds = self.odd[features.new].astype(np.int32)
        return replace(features, urls=SparseRows(kinds, features.urls.indptr))


@pytest.mark.parametrize("graded", [True, False])
def test_a_crawl_without_a_miss_learns_what_leads_to_the_edge(graded: bool) -> None:
    toy = Edge()
    apprentice = Apprentice(Options(batch=900, groups=("url",), graded=graded))
    toy.visit(apprentice, range(60))
    for _ in range(5):
        lesson = apprentice.learn()
        apprentice.adopt(lesson)
    mean = [lesson.scores[toy.odd[lesson.urls] == odd].mean() for odd in (False, True)]
    if graded:
        assert mean[0] > mean[1] + 0.08
    else:
        assert abs(mean[0] - mean[1]) < 0.03
    assert lesson.metrics["relevance"] == pytest.approx(0.765 if graded else 0.95, abs=0.06)


def rewards(found_on: dict[int, list[int]], fetches: list[tuple[int, float]]) -> list[float]:
    """Return G of the URLs fetched, in their order; `found_on` by page, the URLs met there."""
    rates = TunnelRewards()
    n = 1 + max([url for url, _ in fetches] + [v for found in found_on.values() for v in found])
    for url, relevance in fetches:
        rates.observe(url, relevance)
        if url in found_on:
            targets = np.array(found_on[url], np.int64)
            rates.add_links(np.full_like(targets, url), targets, n)
    value: list[float] = rates.reward(np.array([url for url, _ in fetches])).tolist()
    return value


CHAIN = {0: [1], 1: [2], 2: [3, 4, 5, 6]}
MANY = {0: [*range(1, 31)]}


@pytest.mark.parametrize(
    ("found_on", "relevance", "value"),
    [
        ({}, [0.3, 0.0, 1.0], [0.3, 0.0, 1.0]),
        # the best beginnings end with 6: 3 good ones, of 7, 6 and 5 fetches, and the doubt
        (CHAIN, [0, 0, 0, 1, 1, 0, 1], [3 / 9, 3 / 8, 3 / 7, 1.0, 1.0, 0.0, 1.0]),
        # after the first two it was as good for 2; what is fetched later does not take it away
        (CHAIN, [0, 0, 0, 1, 1, 0, 0], [2 / 7, 2 / 6, 2 / 5, 1.0, 1.0, 0.0, 0.0]),
        # one lucky child is not enough, many are
        ({0: [1]}, [0, 1], [1 / 4, 1.0]),
        (MANY, [0.0, *[1.0] * 30], [30 / 33, *[1.0] * 30]),
        # a relevant page keeps its own value, whatever it leads to
        ({0: [1, 2]}, [1, 0, 0], [1.0, 0.0, 0.0]),
        # credit goes to the page on which a URL was met first only
        ({0: [1, 2], 2: [3]}, [0, 0, 0, 1], [1 / 6, 0.0, 1 / 4, 1.0]),
        # seeds are to nobody's credit
        ({0: [2]}, [0, 1, 0], [0.0, 1.0, 0.0]),
        # every page links home: a fetch must not count again on each way round
        ({0: [0, 1], 1: [0, 2, 3], 2: []}, [0, 0, 1, 0], [1 / 5, 1 / 4, 1.0, 0.0]),
    ],
)
def test_rewards_flow_back_along_the_paths_of_a_crawl(
    found_on: dict[int, list[int]], relevance: list[float], value: list[float]
) -> None:
    assert rewards(found_on, list(enumerate(relevance))) == pytest.approx(value)


@pytest.mark.parametrize("clicks", [11, 12, 13, 20])
def test_a_reward_is_carried_twelve_clicks_back(clicks: int) -> None:
    chain = {i: [i + 1] for i in range(clicks)}
    value = rewards(chain, [*((i, 0.0) for i in range(clicks)), (clicks, 1.0)])
    assert (value[0] > 0.0) == (clicks <= 12)
    assert value[max(0, clicks - 12)] == pytest.approx(1 / (min(clicks, 12) + 3))
    assert np.all(np.diff(value) >= 0.0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), RELEVANCE), min_size=1, max_size=40))
def test_a_value_is_that_of_the_best_beginning(drawn: list[tuple[int, float]]) -> None:
    """Page i was met on page parent[i] < i, or is a seed; all are fetched in their order."""
    parents = [at % (i + 1) - 1 if i else -1 for i, (at, _) in enumerate(drawn)]
    relevance = [r for _, r in drawn]
    found: dict[int, list[int]] = {}
    for i, parent in enumerate(parents):
        found.setdefault(parent, []).append(i)
    found.pop(-1)
    value = rewards(found, list(enumerate(relevance)))
    for v, own in enumerate(relevance):
        through, total, best = {v: 0}, own, own
        for u in range(v + 1, len(drawn)):
            if through.get(parents[u], 12) < 12:
                through[u] = through[parents[u]] + 1
                total += relevance[u]
                best = max(best, total / (len(through) + 2.0))
        assert value[v] == pytest.approx(best)
        assert own <= value[v] <= 1.0
