"""Who may fetch, and how much: workers in one order and one budget."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.frontier import Frontier
from focuscrawl.frontier.preview import outlook
from focuscrawl.workers.budget import SLACK, BudgetShare, lot, nearly, threshold
from focuscrawl.workers.recent_fetches import LinkYield

SCORES = st.lists(st.floats(0, 1), max_size=40).map(lambda s: sorted(s, reverse=True))


@settings(max_examples=60, deadline=None)
@given(st.lists(SCORES, min_size=1, max_size=5), st.floats(0, 50))
def test_as_many_links_are_in_reach_as_can_be_fetched(
    offers: list[list[float]], pace: float
) -> None:
    arrays = [np.array(each) for each in offers]
    (limit,) = {  # all workers see the same
        threshold(mine, arrays[:i] + arrays[i + 1 :], pace, 0.1) for i, mine in enumerate(arrays)
    }
    together = np.concatenate(arrays)
    reach = max(len(offers), np.ceil(SLACK * pace * 0.1))
    assert (together > limit).sum() < max(reach, 1) or limit == -np.inf
    assert (together >= limit).sum() >= min(reach, len(together))
    assert nearly(limit) <= limit


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 500), st.integers(1, 6), st.lists(st.floats(0, 300), min_size=1))
def test_grants_never_exceed_the_budget_and_reach_it(
    budget: int, workers: int, paces: list[float]
) -> None:
    granted = 0
    for _ in range(budget):
        wanted = lot(budget, granted, workers, paces[granted % len(paces)], 0)
        assert wanted > 0 or granted == budget
        granted += min(wanted, budget - granted)
    assert granted == budget


def test_a_budget_share_counts_what_was_begun() -> None:
    share = BudgetShare(limited=True)
    assert share.left == 0
    share.set(5)
    for _ in range(3):
        share.take()
    share.put_back()
    assert share.left == 3
    assert share.withdraw(2) == 2
    assert share.withdraw(9) == 1
    share.set(4)  # what the database says is what counts
    assert share.left == 2
    assert BudgetShare(limited=False).left == np.inf


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.1, 0.5, 0.9, np.inf])), max_size=30)
)
def test_the_outlook_is_what_comes_next(pushed: list[tuple[int, float]]) -> None:
    frontier = Frontier(per_host=1)
    for url, (host, score) in enumerate(pushed):
        frontier.push(url, host, score / 2)
    frontier.rescore(np.zeros(0, np.int64), np.zeros(0))
    for times in (1.0, 0.7, 0.4):  # what is out of date does not count
        for url, (_, score) in enumerate(pushed[::2]):
            frontier.push(2 * url, pushed[2 * url][0], score * times)
    scores, hosts = outlook(frontier, 10)
    popped, asked = [], []
    while (best := frontier.peek(0.0)) is not None:
        taken = frontier.pop(0.0)
        assert taken is not None
        assert taken == best
        popped.append(frontier.score(taken))
        asked.append(int(frontier._host_of.data[taken]))
        frontier.release(taken, 0.0)
    assert scores == popped[:10]
    assert Counter(zip(scores, hosts, strict=True)) <= Counter(zip(popped, asked, strict=True))


def test_an_outlook_costs_what_is_seen_not_what_waits() -> None:
    frontier, waiting = Frontier(per_host=1), 20_000
    for url in range(waiting):
        frontier.push(url, url % 10, float(url % 97))
    looked_at = 0

    class Counting(np.ndarray[Any, Any]):
        def __getitem__(self, key: Any) -> Any:
            nonlocal looked_at
            looked_at += 1
            return super().__getitem__(key)

    given_away = range(0, waiting, 2)  # all of five hosts
    for url in given_away:
        frontier.remove(url)
    frontier._state.data = frontier._state.data.view(Counting)
    before, _ = outlook(frontier, 128)  # forgets them
    looked_at = 0
    scores, hosts = outlook(frontier, 128)
    assert scores == before
    assert len(scores) == 128
    assert {host % 2 for host in hosts} == {1}
    assert looked_at < waiting / 20


def test_a_host_on_hold_waits_and_the_others_do_not() -> None:
    frontier = Frontier(per_host=1, delay=1.0)
    for url, host in enumerate([0, 1]):
        frontier.push(url, host, 1.0 - url / 10)
    frontier.hold(0, 5.0)
    assert frontier.pop(1.0) == 1
    assert frontier.pop(4.9) is None
    assert frontier.next_ready() is not None
    assert frontier.pop(5.0) == 0


def brought(finds: LinkYield, scores: list[float], *, times: int = 200) -> int:
    for _ in range(times):
        finds.count(0.8, scores)
    return finds.stands_for(128)


def test_a_link_stands_for_what_it_will_bring() -> None:
    assert brought(LinkYield(), []) == 1
    assert brought(LinkYield(), [0.7]) == 1  # poorer than what led to its page
    assert brought(LinkYield(), [0.9]) == brought(LinkYield(), [0.9, 0.8, 0.1]) == 128
    each_other = LinkYield()
    for _ in range(100):
        brought(each_other, [0.79], times=1)
        fetches = brought(each_other, [], times=1)
    assert fetches == 2  # a half each: 1 + 1/2 + 1/4 + ...
