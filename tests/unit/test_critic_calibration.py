"""Calibration and its measures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from focuscrawl.critic.calibration import (
    Calibration,
    fit_calibration,
    log_normalised,
    reliability_of_classes,
    reliability_of_relevance,
)

SCORES = arrays(np.float64, (5, 4), elements=st.floats(-5000, 5000))


@settings(max_examples=60, deadline=None)
@given(SCORES, st.floats(1e-3, 50), st.floats(0, 1.5), st.floats(0, 1e5))
def test_keeps_the_order_of_classes_and_never_gets_surer(
    scores: np.ndarray, scale: float, exponent: float, length: float
) -> None:
    raw = log_normalised(scores)
    found = Calibration(scale, exponent)(raw, np.full(5, length))
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0)
    assert (found.max(axis=1) <= raw.max(axis=1) + 1e-9).all()
    in_order = np.take_along_axis(found, raw.argsort(axis=1, kind="stable"), axis=1)
    assert (np.diff(in_order, axis=1) >= -1e-9).all()


def overconfident(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pages whose odds are right for the square root of what naive Bayes makes of them."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(20, 2000, n).astype(np.float64)
    honest = log_normalised(generator.normal(0, 2, (n, 3)))
    cumulative = np.exp(honest).cumsum(axis=1)
    truth = (generator.random(n)[:, None] > cumulative).sum(axis=1).clip(max=2)
    return log_normalised(honest * np.sqrt(lengths)[:, None]), lengths, truth


def test_finds_how_far_to_trust_long_pages() -> None:
    raw, lengths, truth = overconfident(3000)
    calibration = fit_calibration(raw, lengths, truth)
    assert calibration.exponent == pytest.approx(0.5, abs=0.1)
    before = reliability_of_classes(np.exp(raw), truth)
    after = reliability_of_classes(np.exp(calibration(raw, lengths)), truth)
    assert before.ece > 0.15
    assert after.ece < 0.03
    assert after.brier < before.brier


def test_a_few_right_judgements_prove_no_certainty() -> None:
    raw = np.log([[0.999999, 0.000001], [0.000001, 0.999999]])
    calibration = fit_calibration(raw, np.full(2, 100.0), np.array([0, 1]))
    assert np.exp(calibration(raw, np.full(2, 100.0))).max() < 0.9


@pytest.mark.parametrize(("scale", "exponent"), [(0.0, 0.5), (-1.0, 0.5), (1.0, -0.1)])
def test_refuses_what_would_turn_the_order_round(scale: float, exponent: float) -> None:
    with pytest.raises(ValueError, match="calibration"):
        Calibration(scale, exponent)


def test_reliability_by_hand() -> None:
    found = reliability_of_relevance(
        np.array([0.0, 0.02, 0.9, 1.0]), np.array([False, False, True, False])
    )
    assert found.brier == pytest.approx((0.02**2 + 0.1**2 + 1.0) / 4)
    assert [(each.low, each.pages, each.frequency) for each in found.bins] == [
        (0.0, 2, 0.0),
        (0.9, 2, 0.5),
    ]
    assert found.ece == pytest.approx((2 * 0.01 + 2 * 0.45) / 4)


@pytest.mark.parametrize("on_topic", [True, False])
def test_reliability_where_all_pages_are_of_one_side(on_topic: bool) -> None:
    found = reliability_of_relevance(np.array([0.2, 0.4]), np.array([on_topic, on_topic]))
    assert found.brier == pytest.approx(0.5 if on_topic else 0.1, abs=0.01)


@settings(max_examples=40, deadline=None)
@given(SCORES, arrays(np.int64, 5, elements=st.integers(0, 3)))
def test_brier_is_the_mean_squared_distance_to_what_was_true(
    scores: np.ndarray, truth: np.ndarray
) -> None:
    probabilities = np.exp(log_normalised(scores))
    expected = ((probabilities - np.eye(4)[truth]) ** 2).sum(axis=1).mean()
    assert reliability_of_classes(probabilities, truth).brier == pytest.approx(expected)
