"""Falls of the speed at which relevant pages come in."""

from __future__ import annotations

import numpy as np
import pytest

from focuscrawl.diagnosis import SLOW, SPEEDY, SpeedWatch
from focuscrawl.diagnosis.alarms import WINDOW

FAST, BUSY = "fast.example", "busy.example"


class Told:
    """A crawl whose fetches take as long, and bring as much, as is said."""

    def __init__(self) -> None:
        self.watch = SpeedWatch()
        self.clock = 1000.0
        self.n = 0
        self.said: list[tuple[int, str]] = []

    def visit(self, seconds: float, relevance: float, host: str = FAST) -> None:
        self.n += 1
        self.clock += seconds
        told = self.watch.visited(self.clock, relevance, host)
        if told is not None:
            self.said.append((self.n, told))

    def visits(self, n: int, seconds: float, relevance: float, host: str = FAST) -> None:
        for _ in range(n):
            self.visit(seconds, relevance, host)


def test_fetches_that_take_longer_are_told_with_their_host_and_their_end() -> None:
    told = Told()
    told.visits(200, 1.0, 0.8)
    told.visits(100, 5.0, 0.8, BUSY)
    ((seq, kind),) = told.said
    assert kind == SLOW
    assert 200 < seq <= 200 + WINDOW
    slowness = told.watch.slowness
    assert slowness is not None
    assert slowness.before == pytest.approx(0.8 * 3600, rel=0.05)
    assert slowness.now <= slowness.before / 2
    assert "a fetch takes" in slowness.describe()
    told.visits(100, 1.0, 0.8)
    assert [kind for _, kind in told.said] == [SLOW, SPEEDY]
    assert told.watch.slowness is None


def test_the_host_that_most_fetches_wait_for_is_named() -> None:
    told = Told()
    told.visits(200, 1.0, 0.8)
    told.visits(WINDOW, 2.3, 0.8, BUSY)
    slowness = told.watch.slowness
    assert slowness is not None
    assert slowness.host == BUSY
    assert BUSY in slowness.describe()


def test_fetches_as_fast_that_bring_less_are_told_as_such() -> None:
    told = Told()
    told.visits(200, 1.0, 1.0)
    told.visits(WINDOW, 1.0, 0.1)
    slowness = told.watch.slowness
    assert slowness is not None
    assert "fetches come as fast, and bring less" in slowness.describe()


def test_a_speed_that_hovers_about_a_bound_is_told_once() -> None:
    rng, said = np.random.default_rng(0), 0
    told = Told()
    told.visits(4000, 1.0, 0.8)
    for _ in range(20):  # between half of the speed and three fifths of it, a window each
        told.visits(WINDOW, 1.0 / rng.uniform(0.45, 0.6), 0.8)
        said = len(told.said)
    assert said == 1


def test_noise_is_no_fall() -> None:
    rng, alarms = np.random.default_rng(1), 0
    for _ in range(10):
        told = Told()
        for seconds, relevant in zip(rng.exponential(1.0, 1500), rng.random(1500), strict=True):
            told.visit(seconds, float(relevant < 0.5))
        alarms += sum(kind == SLOW for _, kind in told.said)
    assert alarms <= 2  # of 13,000 windows
