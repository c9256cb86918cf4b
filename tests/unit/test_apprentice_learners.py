"""Learners: what every one promises, and the arithmetic of each."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from focuscrawl.apprentice.hashing import SparseRows, row_pointers
from focuscrawl.apprentice.learners import (
    Instances,
    Learner,
    LinearRegressor,
    LogisticLearner,
    NaiveBayesLearner,
    minimize_lbfgs,
    row_sums,
    unit_scale,
)
from focuscrawl.apprentice.online_training import auc, drift, validate

if TYPE_CHECKING:
    from numpy.typing import NDArray

HASH_SIZE = 64
LEARNERS: list[type[Learner]] = [LogisticLearner, LinearRegressor, NaiveBayesLearner]


def bag(*rows: Sequence[int], dense: Sequence[Sequence[float]] | None = None) -> Instances:
    lengths = np.array([len(row) for row in rows], np.int64)
    hashed = SparseRows(
        np.array([f for row in rows for f in row], np.int32), row_pointers(lengths)
    )
    inputs = np.zeros((len(rows), 0)) if dense is None else np.array(dense)
    return Instances(hashed, np.ones(lengths.sum()), inputs)


def lesson(n: int = 200, seed: int = 0) -> tuple[Instances, NDArray[np.float64]]:
    """Feature 1 is for high instances, 2 for low ones, the rest is noise."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.5).astype(float)
    made = bag(*([1 if high else 2, *rng.integers(3, HASH_SIZE, 4).tolist()] for high in y))
    return Instances(made.rows, np.repeat(unit_scale(made.rows), made.rows.lengths), made.dense), y


def with_dense(made: Instances, dense: NDArray[np.float64]) -> Instances:
    return Instances(made.rows, made.values, dense)


@pytest.mark.parametrize("kind", LEARNERS)
class TestEveryLearner:
    def test_it_learns_probabilities(self, kind: type[Learner]) -> None:
        unseen, y = lesson(seed=1)
        learner = kind(HASH_SIZE)
        assert np.ptp(learner.predict(unseen)) == 0.0  # before it learns
        predicted = learner.partial_fit(*lesson()).predict(unseen)
        assert auc(predicted, y > 0.5) > 0.95
        assert predicted.shape == (len(unseen),)
        assert 0.0 <= predicted.min() <= predicted.max() <= 1.0

    def test_one_sided_lessons_are_no_error(self, kind: type[Learner]) -> None:
        X, _ = lesson(20)  # noqa: N806
        assert np.isfinite(kind(HASH_SIZE).partial_fit(X, np.ones(20)).predict(X)).all()

    def test_its_state_continues_it(self, kind: type[Learner]) -> None:
        X, y = lesson()  # noqa: N806
        learner = kind(HASH_SIZE).partial_fit(X, y)
        again, more = kind(HASH_SIZE).set_state(learner.get_state()), lesson(seed=2)
        assert np.array_equal(
            learner.partial_fit(*more).predict(X), again.partial_fit(*more).predict(X)
        )

    def test_instances_without_weight_teach_nothing(self, kind: type[Learner]) -> None:
        X, y = lesson()  # noqa: N806
        weight = (np.arange(len(y)) < 100).astype(float)
        half = Instances(X.rows.take(np.arange(100)), X.values[:500], X.dense[:100])
        whole = kind(HASH_SIZE).partial_fit(X, np.where(weight > 0, y, 1 - y), weight).predict(X)
        assert auc(whole, kind(HASH_SIZE).partial_fit(half, y[:100]).predict(X) > 0.5) > 0.95

    def test_a_shallow_copy_learns_by_itself(self, kind: type[Learner]) -> None:
        X, y = lesson()  # noqa: N806
        learner = kind(HASH_SIZE).partial_fit(X, y)
        before = learner.predict(X)
        copy.copy(learner).partial_fit(*lesson(seed=3))
        assert np.array_equal(learner.predict(X), before)

    @pytest.mark.parametrize("lessons", [0, 1, 3])
    def test_it_predicts_the_response_to_the_linear_sum(
        self, kind: type[Learner], lessons: int
    ) -> None:
        learner = kind(HASH_SIZE, prior=(0.7, -0.2, 0.1))
        rng = np.random.default_rng(0)
        for seed in range(lessons):
            X, y = lesson(50, seed)  # noqa: N806
            learner.partial_fit(with_dense(X, rng.random((50, 2))), y)
        X = with_dense(lesson(50, 9)[0], rng.random((50, 2)))  # noqa: N806
        weights, dense = learner.linear()
        assert (weights.shape, dense.shape) == ((HASH_SIZE,), (3,))
        sums = X.dot(weights) + X.dense @ dense[:2] + dense[2]
        assert np.allclose(learner.response(sums), learner.predict(X))
        if not lessons:
            assert not weights.any()
            assert dense.tolist() == [0.7, -0.2, 0.1]


def test_naive_bayes_is_that_of_the_paper() -> None:
    learner = NaiveBayesLearner(4).partial_fit(bag([0, 0, 1], [1, 2]), np.array([0.9, 0.1]))
    # |T| = 3; n(high) = 3 words, n(low) = 2; equal numbers of instances
    theta_high, theta_low = (1 + 2) / (3 + 3), (1 + 0) / (3 + 2)
    assert np.isclose(learner.predict(bag([0]))[0], theta_high / (theta_high + theta_low))


def test_buckets_of_equal_size_are_split_at_the_median() -> None:
    X = bag([0], [1], [2], [3])  # noqa: N806
    learner = NaiveBayesLearner(4, equal_buckets=True)
    learner.partial_fit(X, np.full(4, 0.9))  # cannot be split
    assert (learner.boundary_, learner.instances_.tolist()) == (0.5, [0.0, 4.0])
    learner = NaiveBayesLearner(4, equal_buckets=True)
    learner.partial_fit(X, np.array([0.0, 0.01, 0.02, 1.0]))
    assert (learner.boundary_, learner.instances_.tolist()) == (0.01, [2.0, 2.0])
    learner.partial_fit(X, np.array([0.8, 0.9, 0.9, 1.0]))  # the boundary stays
    assert learner.instances_.tolist() == [2.0, 6.0]
    loaded = NaiveBayesLearner(4, equal_buckets=True).set_state(learner.get_state())
    assert loaded.boundary_ == 0.01
    # three of four labels are 0: as equal as they can be
    uneven = NaiveBayesLearner(4, equal_buckets=True)
    uneven.partial_fit(X, np.array([0.0, 0.0, 0.0, 1.0]))
    assert uneven.instances_.tolist() == [3.0, 1.0]


def test_naive_bayes_goes_by_the_prior_while_a_bucket_is_empty() -> None:
    X = bag([0, 1], [2], dense=[[1.0], [0.0]])  # noqa: N806
    learner = NaiveBayesLearner(4, prior=(1.5, -0.5))
    believed = 1 / (1 + np.exp([-1.0, 0.5]))
    assert np.allclose(learner.predict(X), believed)
    learner.partial_fit(X, np.array([0.9, 1.0]))  # both high
    assert np.allclose(learner.predict(X), believed)
    learner.partial_fit(X, np.array([0.0, 0.5]))  # both low: 1/2 is not high
    assert learner.instances_.tolist() == [2.0, 2.0]
    moved = learner.predict(with_dense(X, np.array([[9.0], [-9.0]])))
    assert np.array_equal(moved, learner.predict(X))  # the prior no longer counts


def test_naive_bayes_says_nothing_of_features_it_has_not_seen() -> None:
    learner = NaiveBayesLearner(9).partial_fit(bag([0, 1], [1, 2], [1]), np.array([1.0, 0.0, 0.0]))
    weights, dense = learner.linear()
    assert np.flatnonzero(weights).tolist() == [0, 1, 2]
    assert dense.tolist() == [pytest.approx(np.log(1 / 2))]
    assert np.allclose(learner.predict(bag([5, 6], [])), 1 / 3)
    # |T| = 3; n(high) = 2, n(low) = 3
    odds = 0.5 * (2 / 5 / (1 / 6)) * (2 / 5 / (3 / 6))
    assert np.isclose(learner.predict(bag([0, 1]))[0], odds / (1 + odds))


def test_the_prior_decides_until_there_is_evidence() -> None:
    learner = LogisticLearner(HASH_SIZE, prior=(2.0, -1.0))
    X = bag([], [], dense=[[1.0], [0.0]])  # noqa: N806
    assert np.allclose(learner.margin(X), [1.0, -1.0])
    many = bag(*[[]] * 400, dense=[[1.0]] * 200 + [[0.0]] * 200)
    for _ in range(5):
        learner.partial_fit(many, np.repeat([0.0, 1.0], 200))
    assert learner.margin(X)[0] < 0 < learner.margin(X)[1]


def test_a_believer_changes_its_mind_only_by_evidence() -> None:
    X, y = lesson()  # noqa: N806
    learner = LogisticLearner(HASH_SIZE).partial_fit(X, y).use_as_prior()
    before = learner.predict(X)
    assert np.array_equal(learner.partial_fit(bag(), np.zeros(0)).predict(X), before)
    few = Instances(X.rows.take(np.arange(3)), X.values[:15], X.dense[:3])
    learner.partial_fit(few, y[:3])
    assert np.corrcoef(before, learner.predict(X))[0, 1] > 0.95


def test_descent_finds_the_minimum_of_a_quadratic() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(12, 12))
    curve = root @ root.T + np.eye(12)
    goal = rng.normal(size=12)

    def function(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        slope = curve @ (x - goal)
        return float(0.5 * (x - goal) @ slope), slope

    found = minimize_lbfgs(function, np.zeros(12), steps=100, tolerance=0.0)
    assert np.allclose(found, goal, atol=1e-3)
    few = minimize_lbfgs(function, np.zeros(12), steps=2)
    assert function(few)[0] < function(np.zeros(12))[0]


def test_row_sums_of_empty_rows_are_zero() -> None:
    sums = row_sums(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 2, 2, 3, 3]))
    assert sums.tolist() == [0.0, 3.0, 0.0, 4.0, 0.0]


def test_validation() -> None:
    y = np.array([0.0, 1.0, 1.0, 0.0])
    good = validate(np.array([0.1, 0.9, 0.8, 0.3]), y)
    bad = validate(np.array([0.9, 0.1, 0.8, 0.3]), y)
    assert (good["auc"], bad["auc"]) == (1.0, 0.25)
    assert good["log_loss"] < bad["log_loss"]
    assert auc(np.ones(4), y > 0.5) == auc(np.arange(4.0), np.ones(4, bool)) == 0.5
    assert validate(np.zeros(0), np.zeros(0)) == {}


def test_drift() -> None:
    found = drift(np.array([0.0, 0.05, 0.95, 1.0]), np.array([0.1, 0.05, 0.45, 0.5]))
    assert found["drift"] == pytest.approx(1.1 / 4)
    assert found["histogram_before"] == [2, 0, 0, 0, 0, 0, 0, 0, 0, 2]
    assert found["histogram_after"] == [1, 1, 0, 0, 1, 1, 0, 0, 0, 0]
    assert drift(np.zeros(0), np.zeros(0)) == {}
