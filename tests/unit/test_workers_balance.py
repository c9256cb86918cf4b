"""Workers that wait, and workers that have more good links than time."""

from __future__ import annotations

import numpy as np
import pytest

from focuscrawl.workers.balance import ShardBalance
from focuscrawl.workers.recent_fetches import FetchShares, Throughput

LIMIT = 0.5


def balanced(me: int, own: dict[int, int], others: int, *, seconds: float = 10.0) -> ShardBalance:
    """Return what worker 1 or 2 thinks after a while.

    Parameters
    ----------
    own : good links of it, by shard
    others : good links of the other one
    """
    shards = np.repeat(np.array([*own], np.int64), np.array([*own.values()], np.int64))
    offers = {me: np.full(len(shards), 0.9), 3 - me: np.full(others, 0.8)}
    balance = ShardBalance(me, 8)
    for now in np.arange(0.0, seconds, 0.1):
        balance.compare(float(now), LIMIT, offers, {1: 50.0, 2: 50.0}, shards)
    return balance


def test_who_waits_frees_its_poorest_shard_and_gets_a_better_one() -> None:
    poor = balanced(2, {4: 1, 5: 2, 6: 1}, 16)
    assert poor.to_give(10.0, [4, 5, 6, 7], free=True) is None  # somebody has made an offer
    assert poor.to_give(10.0, [4, 5, 6, 7], free=False) == 7
    assert poor.to_give(10.1, [4, 5, 6], free=False) is None  # one at a time
    rich = balanced(1, {0: 2, 1: 6, 2: 8}, 4)
    assert rich.to_give(10.0, [0, 1, 2, 3], free=False) is None  # nobody asks for one
    assert rich.to_give(10.0, [0, 1, 2, 3], free=True) == 1  # after which both have as many


def test_one_good_host_stays_where_it_is() -> None:
    rich = balanced(1, {0: 20}, 0)
    assert rich.to_give(10.0, [0, 1, 2, 3], free=True) is None


@pytest.mark.parametrize("others", [8, 10, 12])
def test_who_has_about_its_part_gives_nothing(others: int) -> None:
    balance = balanced(1, {0: 5, 1: 5}, others)
    assert balance.to_give(10.0, [0, 1, 2, 3], free=False) is None
    assert balance.to_give(10.0, [0, 1, 2, 3], free=True) is None


def test_who_has_just_joined_counts_as_able_as_the_others() -> None:
    own = np.repeat(np.arange(6), 3)  # of 16 shards that have three good links each
    offers = {1: np.full(18, 0.9), 2: np.full(18, 0.9), 3: np.full(12, 0.9)}
    balance = ShardBalance(1, 16)
    for now in np.arange(0.0, 10.0, 0.1):
        balance.compare(float(now), LIMIT, offers, {1: 50.0, 2: 40.0, 3: 0.0}, own)
        assert balance.to_give(float(now), range(6), free=False) is None
        assert balance.to_give(float(now), range(6), free=True) is None


def test_who_has_joined_and_finds_nothing_is_given_a_shard() -> None:
    offers = {1: np.full(18, 0.9), 2: np.full(18, 0.9), 3: np.zeros(0)}
    balance = ShardBalance(3, 16)
    for now in np.arange(0.0, 10.0, 0.1):
        pace = {1: 50.0, 2: 50.0, 3: 0.0}
        balance.compare(float(now), LIMIT, offers, pace, np.zeros(0, np.int64))
    assert balance.to_give(10.0, [12, 13, 14, 15], free=False) == 12


def test_who_gets_back_its_own_shard_asks_less_often() -> None:
    poor = balanced(2, {4: 1}, 19)
    asked = []
    now = 10.0
    while now < 40.0:
        given = poor.to_give(now, [4, 5], free=False)
        if given is not None:
            asked.append(now)
            poor.took([given])
        now += 0.1
    waits = np.diff(asked)
    assert 2 <= len(waits) <= 4
    assert (np.diff(waits) > 0.0).all()


def test_time_in_which_a_worker_stands_still_does_not_slow_its_pace() -> None:
    pace, done, now = Throughput(), 0, 0.0
    for step in range(1000):
        now += 0.01
        still = step % 10 >= 5
        pace.look(now, still=still)
        done += not still  # one in 10 ms of work
        if step % 5 == 4:
            pace.count(now, done)
    assert pace.value == pytest.approx(100.0, rel=0.25)
    before = pace.value
    pace.look(now, still=True)
    pace.count(now + 60.0, done)
    assert pace.value == pytest.approx(before, rel=0.05)  # it is as able as it was
    pace.look(now + 60.0, still=False)
    for second in range(1, 20):
        pace.count(now + 60.0 + second, done)
    assert pace.value < 1.0  # it could, and found nothing


def test_who_makes_the_fetches_trains_and_no_other() -> None:
    shares = FetchShares()
    assert not shares.should_follow(2, 1)
    for made in range(0, 300, 10):  # three workers, of which the one that trains has no good links
        shares.look({1: 5, 2: 4 * made, 3: 3 * made})
    assert shares.should_follow(2, 1)
    assert not shares.should_follow(3, 1)  # another makes more
    assert not shares.should_follow(2, 3)  # this one judges enough itself
    for made in range(0, 300, 10):
        shares.look({1: 5 + made, 2: 1200, 3: 900})
    assert not shares.should_follow(2, 1)
    shares.look({2: 1200})  # the others have left
    assert not shares.should_follow(1, 2)
