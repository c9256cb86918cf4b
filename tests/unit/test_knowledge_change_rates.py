"""How often pages change, and which are worth another visit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.knowledge.knowledge import (
    MAX_FAILURES,
    MIN_CHANGE_PROBABILITY,
    ChangeHistory,
    change_rate,
)


def history(**columns: float) -> ChangeHistory:
    """Pages of relevance 1 visited once at time 1, but for what is given."""
    usual = dict.fromkeys(ChangeHistory._fields, 0.0) | {"relevance": 1.0, "visited": 1.0}
    given = {name: np.full(1, value) for name, value in (usual | columns).items()}
    return ChangeHistory(**given | {"validated": given["validated"] > 0.0})


def test_the_rate_of_a_poisson_process_is_found() -> None:
    """Of many pages with one rate; the naive X / T would be far below it."""
    rng = np.random.default_rng(0)
    pages, visits, rate, interval = 400, 30, 1.2, 1.0
    seen = rng.random((pages, visits)) < 1.0 - np.exp(-rate * interval)
    found = change_rate(
        np.full(pages, float(visits)),
        seen.sum(axis=1).astype(np.float64),
        np.full(pages, visits * interval),
    )
    assert found.mean() == pytest.approx(rate, rel=0.05)
    assert (seen.sum(axis=1) / visits).mean() < 0.75 * rate


def test_a_page_visited_once_is_judged_by_all_pages() -> None:
    often = change_rate(np.array([20.0, 0.0]), np.array([18.0, 0.0]), np.array([20.0, 0.0]))
    seldom = change_rate(np.array([20.0, 0.0]), np.array([1.0, 0.0]), np.array([20.0, 0.0]))
    assert often[1] > 3.0 * seldom[1] > 0.0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50), st.floats(0.0, 1e4)),
        min_size=1,
        max_size=8,
    )
)
def test_rates_are_finite_and_rise_with_changes(pages: list[tuple[int, int, float]]) -> None:
    accesses = np.array([float(a) for a, _, _ in pages])
    changes = np.minimum(np.array([float(c) for _, c, _ in pages]), accesses)
    span = np.array([t for _, _, t in pages])
    rate = change_rate(accesses, changes, span)
    assert np.isfinite(rate).all()
    assert (rate >= 0.0).all()
    one = np.full(3, 10.0)
    rising = change_rate(one, np.array([0.0, 5.0, 10.0]), one)
    assert (np.diff(rising) > 0.0).all()


@settings(max_examples=60, deadline=None)
@given(st.floats(0.0, 1.0), st.floats(1.0, 100.0), st.floats(0.0, 1.0), st.integers(0, 10))
def test_worth_is_bounded_and_grows_with_time(
    relevance: float, now: float, cheap: float, changes: int
) -> None:
    page = history(relevance=relevance, accesses=10.0, changes=float(changes), span=10.0)
    early, late = page.visit_values(now, cheap)[0], page.visit_values(now + 1.0, cheap)[0]
    assert 0.0 <= early <= late <= relevance + 1e-9


def test_what_is_worth_a_visit() -> None:
    assert history().visit_values(1.0, 0.1)[0] == 0.0  # no time has passed
    plain, validated, hub = (
        history(**kind).visit_values(2.0, 0.1)[0]
        for kind in ({}, {"validated": 1.0}, {"hub": 1.0})
    )
    assert validated > plain > 0.0
    assert hub > plain
    failing = [
        history(failures=float(n)).visit_values(2.0, 0.1)[0] for n in range(MAX_FAILURES + 1)
    ]
    assert failing == sorted(failing, reverse=True)
    assert failing[-2] > 0.0 == failing[-1]


def test_a_page_is_not_visited_before_it_is_due() -> None:
    page = history(accesses=20.0, changes=1.0, span=20.0)
    chance = page.changed(1.5)[0]
    assert chance < MIN_CHANGE_PROBABILITY
    assert page.visit_values(1.5, 0.1)[0] == 0.0
    assert page.visit_values(9.0, 0.1)[0] > 0.0
