"""Falls of the harvest rate and of the speed: told from noise, with their causes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.diagnosis import (
    ALARM,
    FAST_AGAIN,
    NO_PAGE,
    RECOVERED,
    SLOW,
    WINDOW,
    HarvestMonitor,
    SpeedMonitor,
)

if TYPE_CHECKING:
    from focuscrawl.diagnosis import Diagnosis, Slowdown

ON, SIBLING, COUSIN, FAR = "/Money/Funds", "/Money/Shares", "/Money/Banks/Safe", "/Sport/Golf"
FAST, BUSY = "fast.example", "busy.example"


class Harvest:
    """A crawl: every fetch was found on the page that is named, or on none."""

    def __init__(self, marked: str = ON) -> None:
        self.watch = HarvestMonitor([marked])
        self.n = 0
        self.events: list[tuple[int, str]] = []

    @property
    def alarm(self) -> Diagnosis:
        assert self.watch.alarm is not None
        return self.watch.alarm

    def visit(
        self,
        relevance: float,
        topic: str | None,
        referrer: int | None = None,
        busy_host: str | None = None,
    ) -> int:
        self.n += 1
        judged = topic is not None
        event = self.watch.add_fetch(
            self.n, referrer, relevance=relevance, topic=topic, judged=judged, busy_host=busy_host
        )
        if event is not None:
            self.events.append((self.n, event))
        return self.n

    def visits(
        self, n: int, relevance: float, *topics: str | None, referrer: int | None = None
    ) -> None:
        for i in range(n):
            self.visit(relevance, topics[i % len(topics)], referrer)


def after_a_good_start() -> tuple[Harvest, int]:
    """Return a crawl of 100 relevant pages, and the first of them, which links to the others."""
    crawl = Harvest()
    good = crawl.visit(1.0, ON)
    crawl.visits(99, 1.0, ON, referrer=good)
    return crawl, good


def test_a_fall_is_reported_once_with_where_the_fetches_go() -> None:
    crawl, good = after_a_good_start()
    crawl.visits(60, 0.0, SIBLING, SIBLING, FAR, COUSIN, referrer=good)
    ((seq, kind),) = crawl.events
    assert kind == ALARM
    assert 100 + WINDOW // 2 - 1 <= seq <= 100 + WINDOW // 2 + 1  # half of the window
    alarm = crawl.alarm
    assert alarm.seq == seq
    assert alarm.cause == "drifting"  # the pages were found on relevant ones
    assert alarm.before == 1.0
    assert alarm.now <= 0.5
    assert (alarm.lost_to[0].topic, alarm.lost_to[0].before) == (SIBLING, 0.0)
    first, second, _ = alarm.proposals
    assert {(each.topic, each.relation) for each in alarm.proposals} == {
        ("/Money", "parent"),
        (SIBLING, "sibling"),
        ("/Money/Banks", "sibling"),
    }
    assert first.topic == "/Money"
    assert first.share > second.share
    assert first.link_precision is not None
    assert first.link_precision > 0.5  # its own pages, the marked ones among them, lead on
    assert alarm.short().startswith("drifting: Shares ")
    assert "To find more pages, mark /Money (parent, " in alarm.describe()


def test_the_end_of_a_fall_and_a_fall_below_a_fall_are_reported() -> None:
    crawl, _ = after_a_good_start()
    crawl.visits(40, 0.0, FAR)
    crawl.visits(80, 1.0, ON)
    assert [kind for _, kind in crawl.events] == [ALARM, RECOVERED]
    assert crawl.watch.alarm is None
    crawl, _ = after_a_good_start()
    for _ in range(50):
        crawl.visit(1.0, ON)
        crawl.visits(2, 0.0, FAR)
    crawl.visits(100, 0.0, FAR)
    kinds = [kind for _, kind in crawl.events]
    assert kinds[:2] == [ALARM, ALARM]
    assert kinds.count(ALARM) <= 4


@pytest.mark.parametrize(
    ("cause", "topic", "linked"),
    [("stagnating", FAR, False), ("drifting", FAR, True), ("failing", None, True)],
)
def test_causes_are_told_apart(cause: str, topic: str | None, linked: bool) -> None:
    crawl, good = after_a_good_start()
    crawl.visits(50, 0.0, topic, referrer=good if linked else None)
    assert crawl.alarm.cause == cause
    assert crawl.alarm.lost_to[0].topic == (topic or NO_PAGE)


def test_a_busy_host_is_named_if_most_of_what_is_lost_did_not_wait_for_it() -> None:
    crawl, good = after_a_good_start()
    for i in range(50):
        crawl.visit(0.0, FAR, good, busy_host=None if i % 4 == 0 else "best.example")
    assert (crawl.alarm.cause, crawl.alarm.busy_host) == ("busy", "best.example")
    assert crawl.alarm.short() == "busy: best.example"
    assert "the best links are on the busy host best.example" in crawl.alarm.describe()
    crawl, good = after_a_good_start()
    for i in range(50):
        crawl.visit(0.0, FAR, busy_host="best.example" if i % 4 == 0 else None)
    assert crawl.alarm.busy_host is None


def test_no_class_is_proposed_that_everything_lies_under() -> None:
    crawl = Harvest("/good")
    crawl.visits(100, 1.0, "/good")
    crawl.visits(50, 0.0, "/bad")
    assert crawl.alarm.proposals == ()
    assert crawl.alarm.lost_to[0].topic == "/bad"


def test_noise_is_seldom_taken_for_a_fall() -> None:
    alarms = 0
    for seed in range(20):
        for rate in (0.2, 0.5, 0.9):
            crawl = Harvest()
            for relevant in np.random.default_rng(seed).random(600) < rate:
                crawl.visit(float(relevant), ON if relevant else FAR)
            alarms += len(crawl.events) > 0
    assert alarms <= 3  # of 60 crawls of 600 fetches each


FETCH = st.tuples(st.floats(0, 1), st.sampled_from([ON, SIBLING, FAR, None]), st.integers(0, 200))


@settings(max_examples=40, deadline=None)
@given(st.lists(FETCH, max_size=250))
def test_any_crawl_can_be_watched(fetches: list[tuple[float, str | None, int]]) -> None:
    crawl = Harvest()
    for relevance, topic, referrer in fetches:
        crawl.visit(relevance if topic else 0.0, topic, referrer)
    kinds = [kind for _, kind in crawl.events]
    assert all(n > 2 * WINDOW - 1 for n, _ in crawl.events)
    assert all(a != RECOVERED or b == ALARM for a, b in pairwise(kinds))
    alarm = crawl.watch.alarm
    if alarm is not None:
        assert alarm.now < alarm.before
        assert sum(each.now for each in alarm.lost_to) <= 1.0 + 1e-9
        assert "\n" not in alarm.describe()


class Speed:
    """A crawl whose fetches take so many seconds and bring so much relevance."""

    def __init__(self) -> None:
        self.watch = SpeedMonitor()
        self.clock = 1000.0
        self.events: list[str] = []

    @property
    def slowdown(self) -> Slowdown:
        assert self.watch.slowdown is not None
        return self.watch.slowdown

    def visits(self, n: int, seconds: float, relevance: float, host: str = FAST) -> None:
        for _ in range(n):
            self.clock += seconds
            event = self.watch.add_fetch(self.clock, relevance, host)
            self.events += [] if event is None else [event]


def test_fetches_that_take_longer_are_reported_with_their_end() -> None:
    crawl = Speed()
    crawl.visits(200, 1.0, 0.8)
    assert crawl.events == []
    crawl.visits(WINDOW, 5.0, 0.8, BUSY)
    assert crawl.events == [SLOW]
    assert crawl.slowdown.before == pytest.approx(0.8 * 3600, rel=0.05)
    assert crawl.slowdown.now <= crawl.slowdown.before / 2
    assert "a fetch takes" in crawl.slowdown.describe()
    crawl.visits(150, 1.0, 0.8)
    assert crawl.events == [SLOW, FAST_AGAIN]
    assert crawl.watch.slowdown is None


def test_the_host_that_most_fetches_wait_for_is_named_and_fewer_gains_are_told_apart() -> None:
    crawl = Speed()
    crawl.visits(200, 1.0, 0.8)
    crawl.visits(WINDOW, 2.3, 0.8, BUSY)
    assert crawl.slowdown.host == BUSY
    assert BUSY in crawl.slowdown.describe()
    crawl = Speed()
    crawl.visits(200, 1.0, 1.0)
    crawl.visits(WINDOW, 1.0, 0.1)
    assert "fetches are as fast as before" in crawl.slowdown.describe()


def test_a_speed_that_hovers_about_a_bound_is_reported_once_and_noise_is_no_fall() -> None:
    rng, crawl = np.random.default_rng(0), Speed()
    crawl.visits(4000, 1.0, 0.8)
    for _ in range(20):  # between half of the speed and three fifths of it, a window each
        crawl.visits(WINDOW, 1.0 / rng.uniform(0.45, 0.6), 0.8)
    assert crawl.events == [SLOW]
    rng, alarms = np.random.default_rng(1), 0
    for _ in range(10):
        crawl = Speed()
        for seconds, relevant in zip(rng.exponential(1.0, 1500), rng.random(1500), strict=True):
            crawl.visits(1, seconds, float(relevant < 0.5))
        alarms += crawl.events.count(SLOW)
    assert alarms <= 2  # of 13,000 windows
