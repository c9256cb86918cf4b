"""What is deferred waits, is re-scored, and takes its place again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.frontier import Frontier

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUPS = 3
URLS = 24
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["push", "push", "pop", "pop", "turn", "rescore", "update", "remove"]),
        st.integers(0, URLS - 1),
        st.integers(0, 9),
    ),
    max_size=120,
)


class Limited:
    """A frontier whose URLs are in groups that may be closed, beside one that looks at all."""

    def __init__(self) -> None:
        self.frontier = Frontier(per_host=10**6)
        self.closed: set[int] = set()
        self.held: dict[int, list[int]] = {group: [] for group in range(GROUPS)}
        self.waiting: dict[int, float] = {}
        self.popped: set[int] = set()

    def _next(self) -> int | None:
        while (url := self.frontier.peek(0.0)) is not None:
            if url % GROUPS not in self.closed or self.frontier.score(url) == np.inf:
                break
            self.frontier.defer(url)
            assert url in self.frontier.deferred()
            self.held[url % GROUPS].append(url)
        assert self.frontier.pop(0.0) == url
        return url

    def push(self, url: int, score: float) -> None:
        if url not in self.popped and self.waiting.get(url) != np.inf:
            self.frontier.push(url, url % 2, score)
            self.waiting[url] = score

    def turn(self, group: int) -> None:
        if group in self.closed:
            self.closed.remove(group)
            self.frontier.readmit(self.held[group])
            self.held[group].clear()
        else:
            self.closed.add(group)

    def score(self, urls: Sequence[int], shift: int, *, all_anew: bool) -> None:
        scores = [(url * 7 + shift) % 10 / 10 for url in urls]
        for url, score in zip(urls, scores, strict=True):
            if self.waiting.get(url, np.inf) != np.inf:
                self.waiting[url] = score
        move = self.frontier.rescore if all_anew else self.frontier.update
        move(np.array(urls, dtype=np.int64), np.array(scores))

    def best(self) -> int | None:
        may = {
            url: score
            for url, score in self.waiting.items()
            if url % GROUPS not in self.closed or score == np.inf
        }
        return min(may, key=lambda url: (-may[url], url), default=None)

    def pop(self) -> None:
        expected = self.best()
        assert self._next() == expected
        may = [url for url in self.waiting if url not in self.frontier.deferred()]
        assert self.frontier.all_deferred == bool(not may and self.waiting) or expected is not None
        if expected is not None:
            del self.waiting[expected]
            self.popped.add(expected)


@settings(max_examples=120, deadline=None)
@given(STEPS)
def test_the_best_that_may_comes_next(steps: list[tuple[str, int, int]]) -> None:
    limited = Limited()
    for what, url, number in steps:
        if what == "push":
            limited.push(url, np.inf if number == 9 else number / 10)
        elif what == "pop":
            limited.pop()
        elif what == "turn":
            limited.turn(url % GROUPS)
        elif what == "remove":
            limited.frontier.remove(url)
            limited.waiting.pop(url, None)
        else:
            urls = range(URLS) if what == "rescore" else [url, (url + number) % URLS]
            limited.score(sorted({*urls}), number, all_anew=what == "rescore")
        assert len(limited.frontier) == len(limited.waiting)
        assert limited.frontier.queued().tolist() == sorted(limited.waiting)
    limited.closed.clear()
    for held in limited.held.values():
        limited.frontier.readmit(held)
    while limited.waiting:
        limited.pop()
    limited.pop()


@settings(max_examples=60, deadline=None)
@given(STEPS, STEPS)
def test_what_changes_while_all_is_sorted_keeps_its_place(
    before: list[tuple[str, int, int]], meanwhile: list[tuple[str, int, int]]
) -> None:
    limited = Limited()
    arrangement = None
    for steps in (before, meanwhile):
        for what, url, number in steps:
            if what == "push":
                limited.push(url, np.inf if number == 9 else number / 10)
            elif what == "pop":
                limited.pop()
            elif what == "turn":
                limited.turn(url % GROUPS)
        if arrangement is None:
            known = np.arange(URLS)
            arrangement = limited.frontier.arrange(known, (known * 7 + 3) % 10 / 10)
            sorted_then = set(limited.waiting)
            before_seeds = {url for url, score in limited.waiting.items() if score == np.inf}
    assert arrangement is not None
    limited.frontier.adopt(arrangement)
    for url in sorted_then - before_seeds:
        if limited.waiting.get(url, np.inf) != np.inf:
            limited.waiting[url] = (url * 7 + 3) % 10 / 10
    while limited.best() is not None:
        limited.pop()
    for group in sorted(limited.closed):
        limited.turn(group)
    while limited.waiting:
        limited.pop()


def test_what_is_deferred_comes_when_it_is_readmitted() -> None:
    frontier = Frontier(delay=1.0)
    for url, score in enumerate([0.9, 0.8, 0.7]):
        frontier.push(url, 0, score)
    for url in (0, 1):
        assert frontier.peek(0.0) == url
        frontier.defer(url)
        assert not frontier.all_deferred
    frontier.defer(7)  # nobody knows it
    assert frontier.pop(0.0) == 2
    frontier.defer(2)  # it does not wait any more
    frontier.release(2, 0.0)
    assert frontier.all_deferred
    assert frontier.deferred().tolist() == [0, 1]
    assert len(frontier) == 2
    assert frontier.pop(0.5) is None
    frontier.readmit([0, 2])
    assert frontier.peek(0.5) is None  # its host has no room yet
    assert frontier.pop(1.5) == 0
    frontier.remove(1)
    assert len(frontier) == 0
    assert not frontier.all_deferred
