from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
import pytest

from focuscrawl.apprentice.hashing import SparseRows, pointers
from focuscrawl.apprentice.learners import (
    Instances,
    Learner,
    LinearRegressor,
    LogisticLearner,
    NaiveBayesLearner,
    descend,
    row_sums,
    unit,
)
from focuscrawl.apprentice.lessons import auc, validate

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPACE = 64
LEARNERS: list[type[Learner]] = [LogisticLearner, LinearRegressor, NaiveBayesLearner]


def make(kind: type[Learner]) -> Learner:
    return kind(SPACE)


def lesson(n: int = 200, seed: int = 0) -> tuple[Instances, NDArray[np.float64]]:
    """Feature 1 is for high instances, 2 for low ones, the rest is noise."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.5).astype(float)
    rows = [[1 if high else 2, *rng.integers(3, SPACE, 4).tolist()] for high in y]
    lengths = np.array([len(row) for row in rows])
    hashed = SparseRows(np.concatenate(rows).astype(np.int32), pointers(lengths))
    return Instances(hashed, np.repeat(unit(hashed), lengths), np.zeros((n, 0))), y


@pytest.mark.parametrize("kind", LEARNERS)
class TestEveryLearner:
    def test_it_learns(self, kind: type[Learner]) -> None:
        learner = make(kind)
        learner.partial_fit(*lesson())
        unseen, y = lesson(seed=1)
        assert auc(learner.predict(unseen), y > 0.5) > 0.95

    def test_predictions_are_probabilities(self, kind: type[Learner]) -> None:
        X, y = lesson()  # noqa: N806
        p = make(kind).partial_fit(X, y).predict(X)
        assert p.shape == (len(X),)
        assert p.min() >= 0.0
        assert p.max() <= 1.0

    def test_it_predicts_before_it_learns(self, kind: type[Learner]) -> None:
        X, _ = lesson()  # noqa: N806
        assert np.ptp(make(kind).predict(X)) == 0.0

    def test_one_sided_lessons_are_no_error(self, kind: type[Learner]) -> None:
        X, _ = lesson(20)  # noqa: N806
        assert np.isfinite(make(kind).partial_fit(X, np.ones(20)).predict(X)).all()

    def test_its_state_carries_it_on(self, kind: type[Learner]) -> None:
        X, y = lesson()  # noqa: N806
        learner = make(kind).partial_fit(X, y)
        again = make(kind).set_state(learner.get_state())
        more = lesson(seed=2)
        assert np.array_equal(
            learner.partial_fit(*more).predict(X), again.partial_fit(*more).predict(X)
        )

    def test_instances_without_weight_teach_nothing(self, kind: type[Learner]) -> None:
        X, y = lesson()  # noqa: N806
        weight = (np.arange(len(y)) < 100).astype(float)
        half = Instances(X.rows.take(np.arange(100)), X.values[:500], X.dense[:100])
        whole = make(kind).partial_fit(X, np.where(weight > 0, y, 1 - y), weight).predict(X)
        assert auc(whole, make(kind).partial_fit(half, y[:100]).predict(X) > 0.5) > 0.95


def test_naive_bayes_is_that_of_the_paper() -> None:
    rows = SparseRows(np.array([0, 0, 1, 1, 2], np.int32), np.array([0, 3, 5], np.int64))
    X = Instances(rows, np.ones(5), np.zeros((2, 0)))  # noqa: N806
    learner = NaiveBayesLearner(4).partial_fit(X, np.array([0.9, 0.1]))
    # |T| = 3; n(high) = 3 words, n(low) = 2; equal numbers of instances
    theta_high, theta_low = (1 + 2) / (3 + 3), (1 + 0) / (3 + 2)
    one = Instances(
        SparseRows(np.array([0], np.int32), np.array([0, 1])), np.ones(1), np.zeros((1, 0))
    )
    assert np.isclose(learner.predict(one)[0], theta_high / (theta_high + theta_low))


def bag(*rows: list[int], dense: list[list[float]]) -> Instances:
    flat = [feature for row in rows for feature in row]
    lengths = np.array([len(row) for row in rows], np.int64)
    return Instances(
        SparseRows(np.array(flat, np.int32), pointers(lengths)),
        np.ones(len(flat)),
        np.array(dense),
    )


def with_dense(instances: Instances, dense: NDArray[np.float64]) -> Instances:
    return Instances(instances.rows, instances.values, dense)


def test_naive_bayes_goes_by_the_prior_while_a_bucket_is_empty() -> None:
    X = bag([0, 1], [2], dense=[[1.0], [0.0]])  # noqa: N806
    learner = NaiveBayesLearner(4, prior=(1.5, -0.5))
    believed = 1 / (1 + np.exp([-1.0, 0.5]))
    assert np.allclose(learner.predict(X), believed)
    learner.partial_fit(X, np.array([0.9, 1.0]))  # both high
    assert np.allclose(learner.predict(X), believed)
    weights, dense = learner.linear()
    assert not weights.any()
    assert dense.tolist() == [1.5, -0.5]
    learner.partial_fit(X, np.array([0.0, 0.5]))  # both low: 1/2 is not high
    assert learner.instances_.tolist() == [2.0, 2.0]
    moved = learner.predict(with_dense(X, np.array([[9.0], [-9.0]])))
    assert np.array_equal(moved, learner.predict(X))  # the prior has had its say


def test_naive_bayes_says_nothing_of_features_it_has_not_seen() -> None:
    X = bag([0, 1], [1, 2], [1], dense=[[]] * 3)  # noqa: N806
    learner = NaiveBayesLearner(9).partial_fit(X, np.array([1.0, 0.0, 0.0]))
    weights, dense = learner.linear()
    assert np.flatnonzero(weights).tolist() == [0, 1, 2]
    assert dense.tolist() == [pytest.approx(np.log(1 / 2))]
    unseen = bag([5, 6], [], dense=[[]] * 2)
    assert np.allclose(learner.predict(unseen), 1 / 3)
    # |T| = 3; n(high) = 2, n(low) = 3
    odds = 0.5 * (2 / 5 / (1 / 6)) * (2 / 5 / (3 / 6))
    assert np.isclose(learner.predict(bag([0, 1], dense=[[]]))[0], odds / (1 + odds))


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("lessons", [0, 1, 3])
def test_what_is_predicted_is_the_response_to_the_linear_sum(
    kind: type[Learner], lessons: int
) -> None:
    learner = kind(SPACE, prior=(0.7, -0.2, 0.1))
    rng = np.random.default_rng(0)
    for seed in range(lessons):
        X, y = lesson(50, seed)  # noqa: N806
        learner.partial_fit(with_dense(X, rng.random((50, 2))), y)
    X = with_dense(lesson(50, 9)[0], rng.random((50, 2)))  # noqa: N806
    weights, dense = learner.linear()
    assert (weights.shape, dense.shape) == ((SPACE,), (3,))
    sums = X.dot(weights) + X.dense @ dense[:2] + dense[2]
    assert np.allclose(learner.response(sums), learner.predict(X))
    if not lessons:
        assert not weights.any()
        assert dense.tolist() == [0.7, -0.2, 0.1]


@pytest.mark.parametrize("kind", LEARNERS)
def test_a_shallow_copy_learns_by_itself(kind: type[Learner]) -> None:
    X, y = lesson()  # noqa: N806
    learner = make(kind).partial_fit(X, y)
    before = learner.predict(X)
    copy.copy(learner).partial_fit(*lesson(seed=3))
    assert np.array_equal(learner.predict(X), before)


def test_the_prior_decides_until_there_is_evidence() -> None:
    learner = LogisticLearner(SPACE, prior=(2.0, -1.0))
    empty = SparseRows(np.zeros(0, np.int32), np.zeros(3, np.int64))
    X = Instances(empty, np.zeros(0), np.array([[1.0], [0.0]]))  # noqa: N806
    assert np.allclose(learner.margin(X), [1.0, -1.0])
    many = Instances(
        SparseRows(np.zeros(0, np.int32), np.zeros(401, np.int64)),
        np.zeros(0),
        np.repeat(np.array([[1.0], [0.0]]), 200, axis=0),
    )
    y = np.repeat([0.0, 1.0], 200)
    for _ in range(5):
        learner.partial_fit(many, y)
    assert learner.margin(X)[0] < 0 < learner.margin(X)[1]


def test_a_believer_changes_its_mind_only_by_evidence() -> None:
    X, y = lesson()  # noqa: N806
    learner = LogisticLearner(SPACE).partial_fit(X, y).believe()
    before = learner.predict(X)
    nothing = Instances(
        SparseRows(np.zeros(0, np.int32), np.zeros(1, np.int64)), np.zeros(0), np.zeros((0, 0))
    )
    learner.partial_fit(nothing, np.zeros(0))
    assert np.array_equal(learner.predict(X), before)
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

    found = descend(function, np.zeros(12), steps=100, tolerance=0.0)
    assert np.allclose(found, goal, atol=1e-3)
    few = descend(function, np.zeros(12), steps=2)
    assert function(few)[0] < function(np.zeros(12))[0]


def test_row_sums_of_empty_rows_are_zero() -> None:
    assert row_sums(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 2, 2, 3, 3])).tolist() == [
        0.0, 3.0, 0.0, 4.0, 0.0,
    ]  # fmt: skip


def test_validation() -> None:
    y = np.array([0.0, 1.0, 1.0, 0.0])
    good = validate(np.array([0.1, 0.9, 0.8, 0.3]), y)
    bad = validate(np.array([0.9, 0.1, 0.8, 0.3]), y)
    assert good["auc"] == 1.0
    assert bad["auc"] == 0.25
    assert good["log_loss"] < bad["log_loss"]
    assert auc(np.ones(4), y > 0.5) == 0.5
    assert auc(np.arange(4.0), np.ones(4, bool)) == 0.5
    assert validate(np.zeros(0), np.zeros(0)) == {}
