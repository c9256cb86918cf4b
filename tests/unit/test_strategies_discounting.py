"""Rewards that flow back along the paths of a crawl."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.labels import TunnelRewards


def crawl(found_on: dict[int, list[int]], fetches: list[tuple[int, float]]) -> list[float]:
    """Return G of the URLs fetched, in their order; `found_on` by page, the URLs met there."""
    rewards = TunnelRewards()
    n = 1 + max([url for url, _ in fetches] + [v for found in found_on.values() for v in found])
    for url, relevance in fetches:
        rewards.observe(url, relevance)
        if url in found_on:
            rewards.found(url, np.array(found_on[url], np.int64), n)
    value: list[float] = rewards.of(np.array([url for url, _ in fetches])).tolist()
    return value


def test_without_links_a_page_is_worth_its_own_relevance() -> None:
    assert crawl({}, [(0, 0.3), (1, 0.0), (2, 1.0)]) == [0.3, 0.0, 1.0]


def test_a_chain_of_irrelevant_pages_to_relevant_ones() -> None:
    chain = {0: [1], 1: [2], 2: [3, 4, 5, 6]}
    fetches = [(0, 0.0), (1, 0.0), (2, 0.0), (3, 1.0), (4, 1.0), (5, 0.0), (6, 1.0)]
    value = crawl(chain, fetches)
    # the best beginnings end with 6: 3 good ones, of 7, 6 and 5 fetches, and the doubt
    assert value[:3] == pytest.approx([3 / 9, 3 / 8, 3 / 7])
    assert value[3:] == [1.0, 1.0, 0.0, 1.0]
    # after the first two it was as good for 2; what is fetched later does not take it away
    late = crawl(chain, [*fetches[:5], (5, 0.0), (6, 0.0)])
    assert late[:3] == pytest.approx([2 / 7, 2 / 6, 2 / 5])


def test_one_lucky_child_is_not_enough() -> None:
    assert crawl({0: [1]}, [(0, 0.0), (1, 1.0)])[0] == pytest.approx(1 / 4)
    many = {0: [*range(1, 31)]}
    assert crawl(many, [(0, 0.0), *((v, 1.0) for v in many[0])])[0] == pytest.approx(30 / 33)


def test_a_relevant_page_keeps_its_own_value_whatever_it_leads_to() -> None:
    assert crawl({0: [1, 2]}, [(0, 1.0), (1, 0.0), (2, 0.0)]) == [1.0, 0.0, 0.0]


def test_credit_goes_to_the_page_on_which_a_url_was_met_first_only() -> None:
    value = crawl({0: [1, 2], 2: [3]}, [(0, 0.0), (1, 0.0), (2, 0.0), (3, 1.0)])
    assert value == pytest.approx([1 / 6, 0.0, 1 / 4, 1.0])


def test_seeds_are_to_nobodys_credit() -> None:
    assert crawl({0: [2]}, [(0, 0.0), (1, 1.0), (2, 0.0)]) == [0.0, 1.0, 0.0]


def test_a_seed_that_is_linked_to_later_is_not_below_its_own_pages() -> None:
    """Every page links home: a fetch must not count again on each way round."""
    home = {0: [0, 1], 1: [0, 2, 3], 2: []}
    value = crawl(home, [(0, 0.0), (1, 0.0), (2, 1.0), (3, 0.0)])
    assert value == pytest.approx([1 / 5, 1 / 4, 1.0, 0.0])


@pytest.mark.parametrize("clicks", [11, 12, 13, 20])
def test_a_reward_is_carried_twelve_clicks_back(clicks: int) -> None:
    chain = {i: [i + 1] for i in range(clicks)}
    value = crawl(chain, [*((i, 0.0) for i in range(clicks)), (clicks, 1.0)])
    assert (value[0] > 0.0) == (clicks <= 12)
    assert value[max(0, clicks - 12)] == pytest.approx(1 / (min(clicks, 12) + 3))
    assert np.all(np.diff(value) >= 0.0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0.0, 1.0)), min_size=1, max_size=40))
def test_a_value_is_that_of_the_best_beginning(drawn: list[tuple[int, float]]) -> None:
    """Page i was met on page parent[i] < i, or is a seed; all are fetched in their order."""
    parents = [at % (i + 1) - 1 if i else -1 for i, (at, _) in enumerate(drawn)]
    relevance = [r for _, r in drawn]
    found: dict[int, list[int]] = {}
    for i, parent in enumerate(parents):
        found.setdefault(parent, []).append(i)
    found.pop(-1)
    value = crawl(found, list(enumerate(relevance)))
    for v, own in enumerate(relevance):
        through, total, best = {v: 0}, own, own
        for u in range(v + 1, len(drawn)):
            if through.get(parents[u], 12) < 12:
                through[u] = through[parents[u]] + 1
                total += relevance[u]
                best = max(best, total / (len(through) + 2.0))
        assert value[v] == pytest.approx(best)
        assert own <= value[v] <= 1.0
