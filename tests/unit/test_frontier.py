"""The frontier against a model that sorts everything anew at every pop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from focuscrawl.frontier import LAST, Frontier, NameTable, SortedQueues

SCORES = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.5000001, 0.75, 1.0, np.inf])
HOSTS = 4


class FrontierMachine(RuleBasedStateMachine):
    """Every operation is done on the frontier and on a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.frontier = Frontier(per_host=2, delay=1.0)
        self.now = 0.0
        self.waiting: dict[int, float] = {}
        self.host: dict[int, int] = {}
        self.active: list[int] = []
        self.ready = dict.fromkeys(range(HOSTS), 0.0)
        self.delayed: dict[int, float] = {}
        self.frontier.set_limit(0, 1)
        self.left: set[int] = set()
        self.halvings: dict[int, int] = {}
        self.arranged: tuple[SortedQueues, dict[int, float]] | None = None

    def _has_room(self, host: int) -> bool:
        under_way = sum(self.host[url] == host for url in self.active)
        return under_way < self._limit(host) and self.ready[host] <= self.now

    @staticmethod
    def _limit(host: int) -> int:
        return 1 if host == 0 else 2

    @rule(url=st.integers(0, 60), host=st.integers(0, HOSTS - 1), score=SCORES)
    def push(self, url: int, host: int, score: float) -> None:
        if url in self.left or url in self.active:
            return
        host = self.host.setdefault(url, host)
        self.frontier.push(url, host, score)
        if url not in self.waiting:
            self.halvings.pop(url, None)
        self.waiting[url] = score

    @precondition(lambda self: self.host)
    @rule(data=st.data(), halvings=st.integers(0, 3))
    def discount(self, data: st.DataObject, halvings: int) -> None:
        url = data.draw(st.sampled_from(sorted(self.host)))
        changes = self.halvings.get(url, 0) != halvings
        assert self.frontier.discount(url, halvings) == changes
        self.halvings[url] = halvings

    def _halved(self, url: int) -> float:
        score, times = self.waiting[url], 2.0 ** self.halvings.get(url, 0)
        return score / times if score > 0.0 else score * times

    @rule(data=st.data())
    def update(self, data: st.DataObject) -> None:
        urls = data.draw(st.lists(st.integers(0, 60), unique=True, max_size=8))
        scores = [data.draw(SCORES) for _ in urls]
        all_at_once = data.draw(st.booleans())
        move = self.frontier.rescore if all_at_once else self.frontier.update
        move(np.array(urls, dtype=np.int64), np.array(scores, dtype=np.float64))
        for url, score in zip(urls, scores, strict=True):
            if url in self.waiting and self.waiting[url] != np.inf:
                self.waiting[url] = score

    @rule(data=st.data())
    def sort_queues(self, data: st.DataObject) -> None:
        """Sort beside the crawl, which goes on with other rules before `adopt`."""
        urls = data.draw(st.lists(st.integers(0, 60), unique=True, max_size=30))
        scores = [data.draw(SCORES) for _ in urls]
        arrangement = self.frontier.sort_queues(np.array(urls, dtype=np.int64), np.array(scores))
        new = dict(zip(urls, scores, strict=True))
        self.arranged = (
            arrangement,
            {
                url: score if score == np.inf else new.get(url, score)
                for url, score in self.waiting.items()
            },
        )

    @precondition(lambda self: self.arranged)
    @rule()
    def adopt(self) -> None:
        assert self.arranged is not None
        arrangement, scores = self.arranged
        self.arranged = None
        self.frontier.replace_queues(arrangement)
        for url in self.waiting.keys() & scores.keys():
            if self.waiting[url] != np.inf:  # what was put first meanwhile stays there
                self.waiting[url] = scores[url]

    @rule()
    def pop(self) -> None:
        ready = [url for url in self.waiting if self._has_room(self.host[url])]
        best = min(ready, key=lambda url: (-self._halved(url), url), default=None)
        assert self.frontier.pop(self.now) == best
        if best is not None:
            self._is_taken(best)

    def _is_taken(self, url: int) -> None:
        del self.waiting[url]
        self.active.append(url)
        self.left.add(url)
        self.ready[self.host[url]] = self.delayed[url] = self.now + 1.0

    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        self.frontier.peek(self.now)  # lets in hosts whose time has come
        ready = sorted(url for url in self.waiting if self._has_room(self.host[url]))
        if ready:
            url = data.draw(st.sampled_from(ready))
            self.frontier.take(url, self.now)
            self._is_taken(url)

    @invariant()
    def the_best_link_of_each_host_is_known(self) -> None:
        self.frontier.peek(self.now)
        for host in set(self.host.values()):
            queued = [url for url in self.waiting if self.host[url] == host]
            room = self._has_room(host)
            best = max((self._halved(url) if room else -np.inf for url in queued), default=None)
            assert self.frontier.best_score(host) == best

    @precondition(lambda self: self.host)
    @rule(data=st.data())
    def best_undiscounted(self, data: st.DataObject) -> None:
        urls = np.array(data.draw(st.lists(st.sampled_from(sorted(self.host)), unique=True)), int)
        queued = [url for url in urls.tolist() if url in self.waiting]
        assert self.frontier.select_queued(urls).tolist() == queued
        usable = [
            url for url in queued if self.waiting[url] < np.inf and not self.halvings.get(url, 0)
        ]
        best = min(usable, key=lambda url: (-self.waiting[url], url), default=None)
        assert self.frontier.best_undiscounted(np.array(queued, int)) == best

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        url = data.draw(st.sampled_from(sorted(self.waiting)))
        self.frontier.remove(url)
        del self.waiting[url]

    @precondition(lambda self: self.active)
    @rule(data=st.data(), back=st.booleans())
    def release(self, data: st.DataObject, back: bool) -> None:
        url = data.draw(st.sampled_from(self.active))
        self.active.remove(url)
        self.frontier.release(url, self.now)
        if back:
            self.left.discard(url)
            self.push(url, self.host[url], 0.5)

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def cancel_delay(self, data: st.DataObject) -> None:
        url = data.draw(st.sampled_from(self.active))
        self.frontier.cancel_delay(url, self.now)
        if self.ready[self.host[url]] == self.delayed[url]:
            self.ready[self.host[url]] = self.now

    @precondition(lambda self: self.host)
    @rule(data=st.data(), seconds=st.sampled_from([0.2, 3.0, np.inf]))
    def hold(self, data: st.DataObject, seconds: float) -> None:
        host = data.draw(st.sampled_from(sorted(set(self.host.values()))))
        self.frontier.hold(host, self.now + seconds)
        self.ready[host] = max(self.ready[host], self.now + seconds)

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def lengths_agree(self) -> None:
        assert len(self.frontier) == len(self.waiting)
        assert self.frontier.queued().tolist() == sorted(self.waiting)
        left = [url for url in self.waiting if self.ready[self.host[url]] == np.inf]
        assert self.frontier.n_at_skipped_hosts == len(left)
        for url, score in self.waiting.items():
            assert self.frontier.score(url) == score
            assert self.frontier.halved_score(url) == self._halved(url)

    @invariant()
    def the_best_links_of_hosts_without_room_are_known(self) -> None:
        self.frontier.peek(self.now)  # lets in hosts whose time has come
        best: dict[int, tuple[float, int]] = {}
        for url in self.waiting:
            host = self.host[url]
            if not self._has_room(host) and self.ready[host] < np.inf:
                best[host] = min(best.get(host, (np.inf, 0)), (-self._halved(url), url))
        awaited = self.frontier.busy_host_links(self.now, -np.inf, 2 * HOSTS)
        assert {(-each.score, each.url) for each in awaited} == set(best.values())

    @invariant()
    def a_timer_wakes_every_host_that_waits_for_one(self) -> None:
        waits = [
            self.ready[host]
            for host in {self.host[url] for url in self.waiting}
            if self.now < self.ready[host] < np.inf
            and sum(self.host[url] == host for url in self.active) < self._limit(host)
        ]
        if waits:
            ready = self.frontier.next_ready()
            assert ready is not None
            assert ready <= min(waits)


TestFrontier = FrontierMachine.TestCase
TestFrontier.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)


@given(st.lists(st.tuples(st.integers(0, HOSTS - 1), SCORES), min_size=1, max_size=200))
@settings(max_examples=50, deadline=None)
def test_loaded_at_once_as_pushed_one_by_one(links: list[tuple[int, float]]) -> None:
    pushed, loaded = Frontier(per_host=1000), Frontier(per_host=1000)
    for url, (host, score) in enumerate(links):
        pushed.push(url, host, score)
    hosts, scores = zip(*links, strict=True)
    loaded.load(np.arange(len(links)), np.array(hosts), np.array(scores))
    order = [pushed.pop(0.0) for _ in links]
    assert order == [loaded.pop(0.0) for _ in links]
    assert order == sorted(range(len(links)), key=lambda url: (-links[url][1], url))
    assert pushed.pop(0.0) is None


@pytest.mark.parametrize("sort", [False, True])
def test_urls_with_most_halvings_come_after_all_others_by_score(sort: bool) -> None:
    frontier = Frontier(per_host=10)
    scores = [0.5, 1.0, 1e-200, 0.0, -2.0]
    for url, score in enumerate(scores):
        frontier.push(url, 0, score)
    frontier.discount(0, LAST)
    frontier.discount(1, LAST)
    frontier.discount(2, 9)
    if sort:
        frontier.rescore(np.arange(5), np.array(scores))
    assert [frontier.pop(0.0) for _ in scores] == [2, 3, 4, 1, 0]


def test_entries_out_of_date_do_not_pile_up() -> None:
    frontier = Frontier()
    frontier.push(0, 0, 0.0)
    for step in range(20_000):
        frontier.push(0, 0, step / 20_000)
        if step % 100 == 0:
            frontier.pop(0.0)
            frontier.release(0, 0.0)
    assert len(frontier._hosts[0]._heap) < 1000
    assert len(frontier._available) < 2000


def test_names_are_numbered_in_order_of_discovery() -> None:
    names = NameTable()
    assert [names.add(name) for name in "abab"] == [(0, True), (1, True), (0, False), (1, False)]
    assert names.get("b") == 1
    assert names.get("c") is None
    assert names[1] == "b"
