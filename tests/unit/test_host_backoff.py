"""How long a host is left in peace."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.foundation.backoff import HostBackoff, read_retry_after

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def test_waits_double_up_to_the_longest() -> None:
    patience = HostBackoff(1.0, 5.0)
    assert [patience.record_failure(0) for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_an_answer_makes_good_and_hosts_are_told_apart() -> None:
    patience = HostBackoff(1.0, 60.0)
    assert [
        patience.record_failure(0),
        patience.record_failure(0),
        patience.record_failure(1),
    ] == [1.0, 2.0, 1.0]
    patience.record_answer(0)
    assert [patience.record_failure(0), patience.record_failure(1)] == [1.0, 2.0]


def test_a_host_that_goes_on_failing_is_left_alone() -> None:
    patience = HostBackoff(1.0, 60.0, failures=3)
    assert [patience.record_failure(0) for _ in range(4)] == [1.0, 2.0, math.inf, math.inf]


def test_requests_that_fail_together_count_once() -> None:
    patience = HostBackoff(1.0, 60.0, failures=2, per_host=3)
    waits = [patience.record_failure(0) for _ in range(6)]
    assert waits == [1.0, 1.0, 1.0, 2.0, 2.0, math.inf]


def test_a_host_gets_the_wait_it_asks_for_or_is_left_alone() -> None:
    patience = HostBackoff(4.0, 60.0)
    assert patience.record_failure(0, 30.0) == 30.0
    assert patience.record_failure(1, 1.0) == 4.0
    assert patience.record_failure(2, 61.0) == math.inf


def test_a_year_of_failures_is_no_number_too_large() -> None:
    patience = HostBackoff(1.0, 60.0)
    assert {patience.record_failure(0) for _ in range(5000)} == {
        1.0,
        2.0,
        4.0,
        8.0,
        16.0,
        32.0,
        60.0,
    }


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("\u0663", None),
        ("9" * 500, 1e18),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 12:00:30", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 99 Mar 2026 11:00:00 GMT", None),
    ],
)
def test_retry_after(text: str, seconds: float | None) -> None:
    assert read_retry_after(text, NOW) == pytest.approx(seconds)


@given(st.integers(0, 10**8))
@settings(max_examples=30, deadline=None)
def test_a_date_says_what_seconds_say(seconds: int) -> None:
    date = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    assert read_retry_after(date, NOW) == read_retry_after(str(seconds), NOW)


@given(st.text())
@settings(max_examples=100, deadline=None)
def test_any_text_is_read(text: str) -> None:
    seconds = read_retry_after(text, NOW)
    assert seconds is None or seconds >= 0.0
