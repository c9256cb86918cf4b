"""Measures, over frames made by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.report.measures import (
    by_depth,
    by_host,
    by_outcome,
    default_window,
    harvest_rate,
    loss_rate,
    moving_harvest_rate,
    relevance_histogram,
)
from focuscrawl.report.outcomes import is_error, outcome
from focuscrawl.report.plain_text import align_columns, one_line, shorten_middle

relevances = st.lists(st.floats(0, 1), max_size=60)


def frame(relevance: list[float]) -> pd.DataFrame:
    n = len(relevance)
    return pd.DataFrame(
        {
            "relevance": np.array(relevance, dtype=np.float64),
            "host": [f"h{i % 3}.example" for i in range(n)],
            "depth": [i // 4 for i in range(n)],
            "outcome": ["page" if r else "HTTP 404" for r in relevance],
        },
        index=pd.RangeIndex(1, n + 1, name="seq"),
    )


@settings(max_examples=40)
@given(relevances)
def test_harvest_rate_is_the_mean_so_far_and_loss_the_rest(relevance: list[float]) -> None:
    pages = frame(relevance)
    harvest, loss = harvest_rate(pages), loss_rate(pages)
    means = [np.mean(relevance[: n + 1]) for n in range(len(relevance))]
    np.testing.assert_allclose(harvest, means, atol=1e-12)
    np.testing.assert_allclose(loss, 1.0 - np.array(means), atol=1e-12)
    assert list(harvest.index) == list(range(1, len(relevance) + 1))


@settings(max_examples=40)
@given(relevances, st.integers(1, 20))
def test_moving_harvest_rate_is_over_full_windows(relevance: list[float], window: int) -> None:
    moving = moving_harvest_rate(frame(relevance), window)
    for n in range(1, len(relevance) + 1):
        if n < window:
            assert np.isnan(moving[n])
        else:
            assert moving[n] == pytest.approx(np.mean(relevance[n - window : n]), abs=1e-9)


def test_window_is_a_hundred_fetches_or_a_tenth_of_a_small_crawl() -> None:
    assert [default_window(n) for n in (0, 50, 500, 1000, 100_000)] == [10, 10, 50, 100, 100]


@settings(max_examples=40)
@given(relevances)
def test_histogram_counts_every_fetch_once(relevance: list[float]) -> None:
    pages = frame(relevance)
    histogram = relevance_histogram(pages)
    assert int(histogram.to_numpy().sum()) == len(pages)
    assert not histogram["unjudged"].iloc[1:].any()
    assert int(histogram["judged"].sum()) == int((pages["outcome"] == "page").sum())


def test_histogram_puts_certain_pages_into_the_last_bin() -> None:
    histogram = relevance_histogram(frame([1.0, 0.99, 0.5]), bins=2)
    assert histogram["judged"].tolist() == [0, 3]


@settings(max_examples=40)
@given(relevances)
def test_hosts_share_all_fetches_and_all_relevance(relevance: list[float]) -> None:
    pages = frame(relevance)
    hosts = by_host(pages)
    assert hosts["fetches"].sum() == len(pages)
    assert hosts["relevance"].sum() == pytest.approx(sum(relevance))
    assert hosts["relevance"].is_monotonic_decreasing
    np.testing.assert_allclose(hosts["wasted"], hosts["fetches"] * (1 - hosts["mean_relevance"]))
    if sum(relevance) > 0:
        assert hosts["share"].sum() == pytest.approx(1.0)


def test_depths_and_outcomes_are_counted() -> None:
    pages = frame([0.5, 0.0, 1.0, 0.0, 0.2])
    assert by_depth(pages)["fetches"].to_dict() == {0: 4, 1: 1}
    assert by_depth(pages)["mean_relevance"].to_dict() == pytest.approx({0: 0.375, 1: 0.2})
    assert by_outcome(pages).to_dict() == {"page": 3, "HTTP 404": 2}


@pytest.mark.parametrize(
    ("status", "error", "duplicate", "name", "failed"),
    [
        (200, None, False, "page", False),
        (200, None, True, "duplicate", False),
        (200, "no HTML", False, "no HTML", False),
        (200, "meta refresh: http://a.example/", False, "redirect", False),
        (200, "redirect loop: back to http://a.example/", False, "redirect loop", True),
        (301, None, False, "redirect", False),
        (302, "redirect without target", False, "redirect without target", True),
        (304, None, False, "not modified", False),
        (404, None, False, "HTTP 404", True),
        (503, None, False, "HTTP 503", True),
        (0, "TimeoutError: took 30 s: too long", False, "TimeoutError", True),
        (0, None, False, "no answer", True),
    ],
)
def test_outcomes_have_names(
    status: int, error: str | None, duplicate: bool, name: str, failed: bool
) -> None:
    assert outcome(status, error, duplicate) == name
    assert is_error(name) == failed


@settings(max_examples=80)
@given(st.text(), st.integers(1, 30))
def test_a_line_obeys_nobody(text: str, width: int) -> None:
    line = one_line(text, width)
    assert len(line) <= width
    assert line == one_line(line, width)
    assert line.isprintable()


def test_a_line_loses_escapes_and_turns_of_direction() -> None:
    assert one_line("a\x1b[31m b\n\u202ec\u2066 \x00d") == "a [31m b c d"


@settings(max_examples=40)
@given(st.text(), st.integers(3, 30))
def test_middle_keeps_both_ends(text: str, width: int) -> None:
    short = shorten_middle(text, width)
    assert len(short) == min(len(text), width)
    assert short[0:1] == text[0:1]
    assert short[-1:] == text[-1:]


def test_tables_align_numbers_right_and_text_left() -> None:
    rows = align_columns([["name", "n"], ["a", "1,000"], ["long name", "7"]], left={0})
    assert rows == ["name           n", "a          1,000", "long name      7"]
