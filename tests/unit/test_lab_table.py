"""The tables of a study, and what statistics say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.lab.study_tables import (
    by_strategy,
    by_topic,
    friedman,
    mean_losses,
    mean_ranks,
    signed_rank,
)


def runs() -> pd.DataFrame:
    rows = [
        ("w", "/A", 0, "base", 0.4),
        ("w", "/A", 1, "base", 0.6),
        ("w", "/A", 0, "new", 0.1),
        ("w", "/A", 1, "new", 0.4),
        ("w", "/B", 0, "base", 0.0),
        ("w", "/B", 0, "new", 0.02),
        ("w", "/A", 0, "partly", 0.9),
    ]
    names = ["web", "topic", "draw", "strategy", "loss"]
    return pd.DataFrame(rows, columns=names).assign(budget=100, fetches=100, oracle=0.01)


def test_losses_are_averaged_before_they_are_divided() -> None:
    mean = mean_losses(runs())
    assert mean["base"].tolist() == pytest.approx([0.5, 0.0])
    assert mean["new"].tolist() == pytest.approx([0.25, 0.02])
    # where nothing was lost there is nothing to reduce
    new = by_topic(runs(), "base").query("strategy == 'new'")
    np.testing.assert_allclose(new["reduction"], [0.5, np.nan])


def test_a_row_a_topic_and_strategy() -> None:
    table = by_topic(runs(), "base").set_index(["topic", "strategy"]).to_dict("index")
    new = table["/A", "new"]
    assert (new["draws"], new["min"], new["max"]) == (2, 0.1, 0.4)
    assert new["std"] == pytest.approx(np.std([0.1, 0.4], ddof=1))
    assert new["reduction"] == pytest.approx(0.5)
    assert np.isnan(table["/B", "new"]["reduction"])
    assert np.isnan(table["/B", "new"]["std"])  # one draw has no spread
    assert len(table) == 5


def test_a_row_a_strategy() -> None:
    frame = by_strategy(runs(), "base").set_index("strategy")
    table = frame.to_dict("index")
    new = table["new"]
    assert (new["topics"], new["pairs"], new["better"], new["worse"]) == (2, 3, 2, 1)
    assert (new["reduction"], new["least"], new["most"]) == pytest.approx((0.5, 0.5, 0.5))
    assert new["extra"] == pytest.approx(0.02)
    assert new["rank"] == 1.5
    assert np.isnan(table["partly"]["rank"])  # not on every topic
    assert frame.loc["base", ["reduction", "worse", "pairs", "p"]].isna().all()
    without = by_strategy(runs(), "base", unranked=["new"])
    ranks = without.set_index("strategy")["rank"].to_dict()
    assert np.isnan(ranks["new"])
    assert ranks["base"] == 1


def test_without_a_baseline_nothing_is_compared() -> None:
    table = by_strategy(runs()[runs()["strategy"] != "base"], "base")
    assert table[["reduction", "worse", "p"]].isna().all(axis=None)
    assert table["loss"].notna().all()


def test_ranks_share_ties() -> None:
    mean = pd.DataFrame({"a": [0.1, 0.2], "b": [0.1, 0.1], "c": [0.5, 0.6], "d": [0.0, np.nan]})
    assert mean_ranks(mean).to_dict() == {"a": 1.75, "b": 1.25, "c": 3.0}
    assert np.isnan(friedman(mean))  # two topics are too few
    many = pd.DataFrame({"a": np.arange(8) / 10, "b": np.arange(8) / 10 + 0.1, "c": [0.95] * 8})
    assert friedman(many) < 0.001
    assert np.isnan(friedman(pd.DataFrame({"a": [1.0] * 4, "b": [1.0] * 4, "c": [1.0] * 4})))


def test_signed_ranks() -> None:
    assert signed_rank([]) == signed_rank([0.0, 0.0]) == 1.0
    # all of n untied pairs on one side: 2 of 2^n signs
    assert signed_rank([-0.1, -0.2, -0.3, -0.4, -0.5, 0.0]) == pytest.approx(2 / 2**5)
    assert signed_rank([-0.1, 0.1]) == pytest.approx(1.0)


@settings(max_examples=50)
@given(st.lists(st.floats(-1, 1), max_size=40))
def test_signed_ranks_have_two_sides(values: list[float]) -> None:
    p = signed_rank(values)
    assert 0 <= p <= 1
    assert p == pytest.approx(signed_rank([-value for value in values]))
