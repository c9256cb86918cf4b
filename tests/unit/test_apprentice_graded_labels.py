"""Relevance by its log-odds, and the labels that come of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.hashing import SparseRows
from focuscrawl.apprentice.labels import GradedLabels, Labels
from focuscrawl.apprentice.options import Options

from .toy_crawl import Toy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.link_table import PageFacts

RELEVANCE = st.floats(0.0, 1.0)
#: as naive Bayes has it: the heart of a topic, its edge, and beyond
HEART, EDGE, BEYOND = 1.0 - 1e-13, 0.9, 1e-9


def grades(*judged: float) -> GradedLabels:
    found = GradedLabels()
    for relevance in judged:
        found.observe(relevance)
    return found


@settings(max_examples=80, deadline=None)
@given(st.lists(RELEVANCE, max_size=20), st.lists(RELEVANCE, min_size=2, max_size=20))
def test_grades_keep_the_order_and_the_middle(judged: list[float], asked: list[float]) -> None:
    relevance = np.sort(np.array(asked))
    graded = grades(*judged).of(relevance)
    assert np.all(np.diff(graded) >= 0.0)
    assert np.all((graded >= 0.0) & (graded <= 1.0))
    assert np.all(graded[relevance < 0.5] <= 0.5)
    assert np.all(graded[relevance > 0.5] >= 0.5)
    assert grades(*judged).of(np.array([0.0, 0.5, 1.0])).tolist() == [0.0, 0.5, 1.0]


def test_a_critic_is_graded_on_its_own_scale() -> None:
    asked = np.array([0.1, 0.9, 0.99, 1.0 - 1e-9])
    modest = grades(*[0.9, 0.1, 0.8, 0.3] * 5).of(asked)
    sure = grades(*[1.0, 1e-30, 1.0 - 1e-14] * 5).of(asked)
    assert modest[1:] == pytest.approx([0.739, 1.0, 1.0], abs=0.001)
    assert sure == pytest.approx([0.4695, 0.5305, 0.5638, 0.7878], abs=0.0005)
    assert modest[0] == pytest.approx(1.0 - modest[1])


def test_what_brought_no_page_says_nothing_of_the_critic() -> None:
    assert grades(0.9, 0.0, 0.0).scale == grades(0.9).scale == grades().scale
    assert grades(1.0).scale == grades(1.0, 1e-300).scale > grades(1.0, *[0.9] * 9).scale


def values_of(options: Options, relevance: list[float]) -> tuple[list[float], list[float]]:
    values = Labels(options)
    for url, each in enumerate(relevance):
        values.observe(url, each)
    own, value = values.of(np.arange(len(relevance)), np.array(relevance))
    return own.tolist(), value.tolist()


def test_near_misses_count_while_there_are_no_misses() -> None:
    for tunnel in (True, False):
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


def test_it_can_be_switched_off() -> None:
    judged = [HEART] * 50 + [EDGE] * 50
    assert values_of(Options(graded=False), judged) == (judged, judged)


def test_what_a_page_opened_counts_by_its_grades() -> None:
    def opened(child: float) -> float:
        values = Labels(Options())
        values.found(0, np.arange(1, 9), 100)
        relevance = [1e-4, *[child] * 8, *[HEART] * 91]
        for url, each in enumerate(relevance):
            values.observe(url, each)
        own, value = values.of(np.arange(100), np.array(relevance))
        assert own[0] < 0.45
        return float(value[0])

    # 8 of 9 and the doubt; those at the edge count as little more than half
    assert opened(HEART) == pytest.approx(8.0 / 11.0, abs=0.05)
    assert 0.45 < opened(EDGE) < 0.58 < 7.2 / 11.0
    none, _ = Labels(Options()).of(np.zeros(0, np.int64), np.zeros(0))
    assert len(none) == 0


class Edge(Toy):
    """A toy where every page is relevant, those of odd numbers only just; a URL shows which."""

    def __init__(self) -> None:
        super().__init__(n=900, out=6)
        self.odd = np.arange(900) % 2 == 1
        self.relevance = np.where(self.odd, EDGE, HEART)
        self.good[:] = True

    def facts(self, u: int, new: NDArray[np.bool_]) -> PageFacts:
        facts = super().facts(u, new)
        kinds = self.odd[facts.new].astype(np.int32)
        return replace(facts, urls=SparseRows(kinds, facts.urls.indptr))


@pytest.mark.parametrize("graded", [True, False])
def test_a_crawl_without_a_miss_learns_what_leads_to_the_edge(graded: bool) -> None:
    toy = Edge()
    apprentice = Apprentice(Options(batch=900, groups=("url",), graded=graded))
    for u in range(60):
        apprentice.observe(u, float(toy.relevance[u]))
        apprentice.expand(u, toy.facts(u, apprentice.new(toy.targets[u])))
    for _ in range(5):
        lesson = apprentice.learn()
        apprentice.adopt(lesson)
    mean = [lesson.scores[toy.odd[lesson.urls] == odd].mean() for odd in (False, True)]
    if graded:
        assert mean[0] > mean[1] + 0.08
    else:
        assert abs(mean[0] - mean[1]) < 0.03
    assert lesson.metrics["relevance"] == pytest.approx(0.765 if graded else 0.95, abs=0.06)
