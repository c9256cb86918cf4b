"""Which link is worth a fetch now, while better ones wait for their hosts: by a fake clock."""

from __future__ import annotations

import math

import pytest

from focuscrawl.frontier import Frontier
from focuscrawl.frontier.patience import Patience

GOOD, IDLE = 0, 1  # hosts
LEFT = 3.0  # fetches


def busy_host(waiting: int = 5, delay: float = 1.0) -> Frontier:
    """Return a frontier at 0.0: a host that was just asked has links of 0.9, another one of 0.2.

    The URL of 0.2 is the last.
    """
    frontier = Frontier(delay=delay)
    for url in range(waiting + 1):
        frontier.push(url, GOOD, 0.9)
    assert frontier.pop(0.0) == 0
    frontier.push(waiting + 1, IDLE, 0.2)
    return frontier


def held(frontier: Frontier, patience: float, left: float = LEFT, now: float = 0.0) -> bool:
    """Tell whether the best link that may be fetched is to wait."""
    best = frontier.peek(now)
    assert best is not None
    score = frontier.score(best)
    return score < Patience(frontier, patience).min_score(score, left, now)


def test_a_link_far_below_what_a_busy_host_has_waits() -> None:
    assert held(busy_host(), patience=10.0)


def test_as_long_as_a_host_takes_is_what_the_difference_has_to_be_worth() -> None:
    # 0.7 better: worth 1 s from 1.43 s a relevant page on
    assert not held(busy_host(), patience=1.4)
    assert held(busy_host(), patience=1.5)
    assert not held(busy_host(delay=10.0), patience=14.0)
    assert held(busy_host(delay=10.0), patience=15.0)


def test_the_delay_is_the_price_however_little_of_it_is_left() -> None:
    assert not held(busy_host(), patience=1.4, now=0.99)


def test_a_link_that_the_budget_will_come_to_is_not_held_back() -> None:
    assert held(busy_host(waiting=5), patience=10.0, left=5)
    assert not held(busy_host(waiting=5), patience=10.0, left=6)


@pytest.mark.parametrize(("left", "waits"), [(10, True), (12, False)])
def test_what_pages_bring_counts_as_what_there_will_be(left: float, waits: bool) -> None:
    frontier = busy_host(waiting=5)
    patience = Patience(frontier, 10.0)
    patience.add_page([0.95, 0.1, math.inf])  # a redirect is no link
    patience.add_page([])
    # every other page brings a good one: of ten fetches five do
    assert (patience.min_score(0.2, left, 0.0) > 0.2) is waits


def test_without_a_budget_nothing_is_held_back() -> None:
    assert not held(busy_host(), patience=1e6, left=math.inf)


def test_a_host_that_is_left_in_peace_is_waited_for_as_long_as_that_is_worth_it() -> None:
    frontier = busy_host()
    frontier.release(0, 0.0)
    frontier.hold(GOOD, 8.0)
    assert not held(frontier, patience=10.0)
    assert held(frontier, patience=10.0, now=1.5)  # 6.5 s more
    frontier.hold(GOOD, math.inf)
    assert not held(frontier, patience=1e6)


def test_a_host_that_does_not_answer_is_not_waited_for_any_more() -> None:
    frontier = busy_host()
    assert held(frontier, patience=10.0, now=6.9)
    assert not held(frontier, patience=10.0, now=7.1)


def test_many_hosts_with_good_links_do_not_keep_each_other_waiting() -> None:
    frontier = Frontier(delay=1.0)
    for host in range(50):
        for each in range(10):
            frontier.push(host * 10 + each, host, 0.9 - host / 1000 - each / 100)
    for given in range(50):
        assert not held(frontier, patience=10.0, left=500 - given)
        frontier.pop(0.0)
    assert frontier.peek(0.0) is None


def test_the_best_links_of_busy_hosts_are_told() -> None:
    frontier = Frontier(delay=1.0)
    for url, (host, score) in enumerate([(0, 0.9), (0, 0.8), (1, 0.7), (1, 0.6), (2, 0.5)]):
        frontier.push(url, host, score)
    assert frontier.busy_host_links(0.0, -math.inf, 9) == []
    frontier.pop(0.0)
    frontier.pop(0.5)
    assert frontier.busy_host_links(0.5, -math.inf, 9) == [(0.8, 1, 1.0), (0.6, 3, 1.0)]
    assert frontier.busy_host_links(0.5, 0.6, 9) == [(0.8, 1, 1.0)]
    assert frontier.busy_host_links(0.5, -math.inf, 1) == [(0.8, 1, 1.0)]
    frontier.remove(1)
    frontier.push(5, 1, 0.95)
    assert [each.url for each in frontier.busy_host_links(0.5, -math.inf, 9)] == [5]
    assert frontier.busy_host_links(2.5, -math.inf, 9)[0].seconds == pytest.approx(
        2.0
    )  # silent so long
