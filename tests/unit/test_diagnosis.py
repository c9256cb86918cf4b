"""Falls of the harvest rate: told from noise, with their causes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.diagnosis import ALARM, RECOVERED, HarvestWatch
from focuscrawl.diagnosis.alarms import WINDOW

ON, SIBLING, COUSIN, FAR = "/Money/Funds", "/Money/Shares", "/Money/Banks/Safe", "/Sport/Golf"


class Told:
    """A crawl: every fetch was found on the page that is named, or on none."""

    def __init__(self) -> None:
        self.watch = HarvestWatch([ON])
        self.n = 0
        self.said: list[tuple[int, str]] = []

    def visit(
        self,
        relevance: float,
        topic: str | None,
        referrer: int | None = None,
        overtakes: str | None = None,
    ) -> int:
        self.n += 1
        url = self.n
        told = self.watch.visited(
            url,
            referrer,
            relevance=relevance,
            topic=topic,
            judged=topic is not None,
            overtakes=overtakes,
        )
        if told is not None:
            self.said.append((self.n, told))
        return url

    def visits(self, n: int, relevance: float, *topics: str | None, referrer: int | None) -> None:
        for i in range(n):
            self.visit(relevance, topics[i % len(topics)], referrer)


def test_a_fall_is_told_once_with_where_the_fetches_go() -> None:
    told = Told()
    good = told.visit(1.0, ON)
    told.visits(99, 1.0, ON, referrer=good)
    told.visits(60, 0.0, SIBLING, SIBLING, FAR, COUSIN, referrer=good)
    ((seq, kind),) = told.said
    assert kind == ALARM
    assert 100 + WINDOW // 2 - 1 <= seq <= 100 + WINDOW // 2 + 1  # half of the window
    alarm = told.watch.alarm
    assert alarm is not None
    assert alarm.seq == seq
    assert alarm.cause == "drifting"  # the pages were found on relevant ones
    assert alarm.before == 1.0
    assert alarm.now <= 0.5
    assert alarm.eating[0].topic == SIBLING
    assert alarm.eating[0].before == 0.0
    assert {(p.topic, p.relation) for p in alarm.proposals} == {
        ("/Money", "parent"), (SIBLING, "sibling"), ("/Money/Banks", "sibling"),
    }  # fmt: skip
    first = alarm.proposals[0]
    assert first.topic == "/Money"
    assert first.share > alarm.proposals[1].share
    assert first.leads is not None
    assert first.leads > 0.5  # its own pages, the marked ones among them, lead on
    assert alarm.short().startswith("drifting: Shares ")
    assert "to go on, mark /Money (parent, " in alarm.describe()


def test_the_end_of_a_fall_is_told() -> None:
    told = Told()
    told.visits(100, 1.0, ON, referrer=None)
    told.visits(40, 0.0, FAR, referrer=None)
    told.visits(80, 1.0, ON, referrer=None)
    assert [kind for _, kind in told.said] == [ALARM, RECOVERED]
    assert told.watch.alarm is None


def test_a_fall_below_a_fall_is_another() -> None:
    told = Told()
    told.visits(100, 1.0, ON, referrer=None)
    for _ in range(50):
        told.visit(1.0, ON)
        told.visit(0.0, FAR)
        told.visit(0.0, FAR)
    told.visits(100, 0.0, FAR, referrer=None)
    kinds = [kind for _, kind in told.said]
    assert kinds[:2] == [ALARM, ALARM]
    assert kinds.count(ALARM) <= 4


def test_causes_are_told_apart() -> None:
    for cause, topic, linked in (
        ("stagnating", FAR, False),
        ("drifting", FAR, True),
        ("failing", None, True),
    ):
        told = Told()
        good = told.visit(1.0, ON)
        told.visits(99, 1.0, ON, referrer=good)
        told.visits(50, 0.0, topic, referrer=good if linked else None)
        assert told.watch.alarm is not None
        assert told.watch.alarm.cause == cause
        if topic is None:
            assert told.watch.alarm.eating[0].topic == "no page"


def test_a_busy_host_is_named_if_most_of_what_is_lost_did_not_wait_for_it() -> None:
    told = Told()
    good = told.visit(1.0, ON)
    told.visits(99, 1.0, ON, referrer=good)
    for i in range(50):
        told.visit(0.0, FAR, good, overtakes=None if i % 4 == 0 else "best.example")
    alarm = told.watch.alarm
    assert alarm is not None
    assert (alarm.cause, alarm.busy) == ("busy", "best.example")
    assert alarm.short() == "busy: best.example"
    assert "your best host is busy, best.example" in alarm.describe()
    told = Told()
    told.visits(100, 1.0, ON, referrer=None)
    for i in range(50):
        told.visit(0.0, FAR, overtakes="best.example" if i % 4 == 0 else None)
    assert told.watch.alarm is not None
    assert told.watch.alarm.busy is None


def test_no_class_is_proposed_that_everything_lies_under() -> None:
    told = Told()
    told.watch = HarvestWatch(["/good"])
    told.visits(100, 1.0, "/good", referrer=None)
    told.visits(50, 0.0, "/bad", referrer=None)
    assert told.watch.alarm is not None
    assert told.watch.alarm.proposals == ()
    assert told.watch.alarm.eating[0].topic == "/bad"


def relevances(rate: float, seed: int, n: int = 600) -> list[float]:
    return [float(x < rate) for x in np.random.default_rng(seed).random(n)]


def test_noise_is_seldom_taken_for_a_fall() -> None:
    alarms = 0
    for seed in range(20):
        for rate in (0.2, 0.5, 0.9):
            told = Told()
            for relevance in relevances(rate, seed):
                told.visit(relevance, ON if relevance else FAR)
            alarms += len(told.said) > 0
    assert alarms <= 3  # of 60 crawls of 600 fetches each


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([ON, SIBLING, FAR, None]),
                          st.integers(0, 200)), max_size=250))  # fmt: skip
def test_any_crawl_can_be_watched(fetches: list[tuple[float, str | None, int]]) -> None:
    told = Told()
    for relevance, topic, referrer in fetches:
        told.visit(relevance if topic else 0.0, topic, referrer)
    kinds = [kind for _, kind in told.said]
    assert all(n > 2 * WINDOW - 1 for n, _ in told.said)
    assert all(a != RECOVERED or b == ALARM for a, b in pairwise(kinds))
    if told.watch.alarm is not None:
        alarm = told.watch.alarm
        assert alarm.now < alarm.before
        assert sum(each.now for each in alarm.eating) <= 1.0 + 1e-9
        assert "\n" not in alarm.describe()
