"""The frontier: a priority queue of URLs over all hosts that keeps to each host's limits."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.foundation.arrays import GrowingArray
from focuscrawl.frontier.hosts import DEFERRED, NOT_QUEUED, QUEUED, Entry, Host

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from numpy.typing import NDArray


_Offer = tuple[float, int, int]  # key and URL of a host's best link, the host

_FREED_PER_POP = (
    4  # outdated entries whose memory one `pop` frees; more would block the event loop
)


class SortedQueues(NamedTuple):
    """All URLs that wait, sorted by host, key and URL.

    Attributes
    ----------
    keys : float64 (n,) of URL numbers below n, scores negated
    state : int8 (n,), where each was then, see `focuscrawl.frontier.hosts`
    runs : number, keys and URLs of each host with URLs in its queue, best first
    """

    keys: NDArray[np.float64]
    state: NDArray[np.int8]
    runs: list[tuple[int, NDArray[np.float64], NDArray[np.int64]]]

    @classmethod
    def of(
        cls,
        keys: NDArray[np.float64],
        state: NDArray[np.int8],
        host_of: NDArray[np.int32],
        urls: NDArray[np.int64],
        scores: NDArray[np.float64],
    ) -> Self:
        """Sort what is in the queues, by new scores of some.

        Parameters
        ----------
        keys, state : (n,), of URL numbers below n; they become the arrangement's own
        host_of : of as many numbers, or more
        urls, scores : new scores; numbers from n on, which came later, and URLs with the score
            inf are skipped
        """
        there = urls < len(state)
        urls, scores = urls[there], scores[there]
        moved = keys[urls] != -np.inf
        keys[urls[moved]] = -scores[moved]
        order = np.flatnonzero(state == QUEUED)
        order = order[np.lexsort((order, keys[order], host_of[order]))]
        sorted_keys, sorted_hosts = keys[order], host_of[order]
        bounds = np.flatnonzero(np.diff(sorted_hosts, prepend=-1))
        hosts, starts = sorted_hosts[bounds].tolist(), bounds.tolist()
        runs = [
            (host, sorted_keys[start:end], order[start:end])
            for host, start, end in zip(hosts, starts, [*starts[1:], len(order)], strict=False)
        ]
        return cls(keys, state, runs)


class BusyHostLink(NamedTuple):
    """The best link of a host without room.

    Attributes
    ----------
    score, url : of the link
    seconds : that the host takes for a link: its delay, or the rest of a longer wait, or how long
        it has not answered
    """

    score: float
    url: int
    seconds: float


class Frontier:
    """Queued URLs in the order of their scores, highest first, discovery order among equals.

    A heap of links per host and a heap of hosts by their best link: `pop` gives the best link
    whose host has room, and a host without room costs nothing until it has. URLs and hosts are
    dense numbers (`NameTable`); times are seconds on any steady clock.

    Parameters
    ----------
    per_host : requests to one host that may be under way at once
    delay : seconds from the start of one request to a host to the start of the next

    Notes
    -----
    A URL pushed with the score inf (a seed) keeps it: `update` and `rescore` skip it. One that is
    *deferred* waits like the others, and its score may change, but it is in no queue: `pop` does
    not return it until it is readmitted.

    After Frontera's and Heritrix's host queues; mutable priorities by entries that are dropped
    when found outdated, as in deep-deep.
    """

    def __init__(self, per_host: int = 1, delay: float = 0.0) -> None:
        self.per_host = per_host
        self.delay = delay
        self._delays: dict[int, float] = {}
        self._keys = GrowingArray(np.float64, fill=np.inf)
        self._state = GrowingArray(np.int8, fill=NOT_QUEUED)
        self._count = [0, 0, 0]  # of URLs in each state
        self._host_of = GrowingArray(np.int32)
        self._hosts: list[Host] = []
        self._available: list[_Offer] = []  # of hosts with room
        self._busy: list[_Offer] = []  # of hosts without
        self._timers: list[tuple[float, int]] = []  # ready_at, host
        self._skipped_hosts: set[int] = set()
        self._outdated: list[list[Entry]] = []  # heaps from before the last `replace_queues`

    def __len__(self) -> int:
        """URLs waiting, deferred or not."""
        return self._count[QUEUED] + self._count[DEFERRED]

    @property
    def all_deferred(self) -> bool:
        """True if URLs are deferred, and all others that wait are on hosts held for ever."""
        return self._count[DEFERRED] > 0 and self._count[QUEUED] == self.n_at_skipped_hosts

    def score(self, url: int) -> float:
        """Return the present or last score of `url`; -inf if it was never queued."""
        return -float(self._keys.data[url]) if url < len(self._keys) else -np.inf

    def scores(self, urls: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the present scores of URLs that wait, float64 (n,)."""
        scores: NDArray[np.float64] = -self._keys.data[urls]
        return scores

    def scores_in_queues(self) -> NDArray[np.float64]:
        """Return the scores of all URLs that wait and are not deferred, float64 (n,)."""
        scores: NDArray[np.float64] = -self._keys.data[self._state.data == QUEUED]
        return scores

    def queued(self) -> NDArray[np.int64]:
        """Return the numbers of all URLs that wait, deferred or not, ascending."""
        return np.flatnonzero(self._state.data)

    def deferred(self) -> NDArray[np.int64]:
        """Return the numbers of all URLs that are deferred, ascending."""
        return np.flatnonzero(self._state.data == DEFERRED)

    def push(self, url: int, host: int, score: float) -> None:
        """Queue `url` of `host`, or move it to `score` if it waits already."""
        self._grow(url + 1, host + 1)
        keys, was = self._keys.data, self._state.data[url]
        if was == QUEUED and keys[url] == -score:
            return
        keys[url] = -score
        if was == DEFERRED and score != np.inf:
            return
        if was != QUEUED:
            self._host_of.data[url] = host
            self._set_state(url, QUEUED)  # last: `sort_queues` may be reading in another thread
        self._enqueue(url)

    def update(self, urls: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        """Move the URLs among `urls` that wait to their new `scores`."""
        urls, scores = self._select_queued(urls, scores)
        for url, score in zip(urls.tolist(), scores.tolist(), strict=True):
            self.push(url, int(self._host_of.data[url]), score)

    def rescore(self, urls: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        """Like `update`, for so many URLs that sorting all anew is cheaper."""
        self.replace_queues(self.sort_queues(urls, scores))

    def sort_queues(self, urls: NDArray[np.int64], scores: NDArray[np.float64]) -> SortedQueues:
        """Sort all that waits as `rescore` would; changes nothing and may run in any thread."""
        # views: the arrays may grow, or be changed, meanwhile
        state = self._state.data.copy()  # first: it grows last
        keys, host_of = self._keys.data[: len(state)].copy(), self._host_of.data
        return SortedQueues.of(keys, state, host_of, urls, scores)

    def replace_queues(self, arrangement: SortedQueues) -> None:
        """Replace the queues by what `sort_queues` has sorted; URLs that left them since stay out.

        The event loop is blocked meanwhile, so there is no loop over URLs: hosts offer what was
        their best when all was sorted, and `pop` drops what is outdated.
        """
        new, then, runs = arrangement
        size = len(new)
        keys, known = self._keys.data[:size], then != NOT_QUEUED
        first = known & (keys == -np.inf)  # put first since all was sorted
        np.copyto(keys, new, where=known & ~first)
        first &= new != -np.inf
        for state in self._hosts:
            if heap := state.clear():
                self._outdated.append(heap)
        self._available, self._busy = [], []
        for host, run_keys, run_urls in runs:
            state = self._hosts[host]
            state.replace(run_keys, run_urls)
            if state.ready_at < np.inf:
                state.offered = float(run_keys[0]), int(run_urls[0])
                offers = self._available if self._has_free_slot(state) else self._busy
                offers.append((*state.offered, host))
        heapq.heapify(self._available)
        heapq.heapify(self._busy)
        since = self._state.data == QUEUED
        since[:size] &= (then != QUEUED) | first
        for url in np.flatnonzero(since).tolist():
            self._enqueue(url)

    def load(
        self, urls: NDArray[np.int64], hosts: NDArray[np.int64], scores: NDArray[np.float64]
    ) -> None:
        """Queue many URLs at once, none of which waits."""
        if not len(urls):
            return
        self._grow(int(urls.max()) + 1, int(hosts.max()) + 1)
        self._keys.data[urls] = -scores
        self._state.data[urls] = QUEUED
        self._host_of.data[urls] = hosts
        for host, count in enumerate(np.bincount(hosts, minlength=len(self._hosts)).tolist()):
            self._hosts[host].queued += count
        self._count[QUEUED] += len(urls)
        self.rescore(urls, scores)

    def pop(self, now: float) -> int | None:
        """Take the best URL whose host has room; None when no host has.

        The URL counts as in flight until `release`.
        """
        url = self.peek(now)
        if url is not None:
            self.pop_peeked(url, now)
        return url

    def pop_peeked(self, url: int, now: float) -> None:
        """Take the URL that `peek` has just returned; `pop` is the two in one."""
        self._free_outdated()
        key, best, host = heapq.heappop(self._available)
        assert best == url
        state = self._hosts[host]
        state.offered = None
        self._set_state(url, NOT_QUEUED)
        state.drop_best((key, url))
        state.active += 1
        state.ready_at = now + self._delays.get(host, self.delay)
        self._make_available(host, now)

    def peek(self, now: float) -> int | None:
        """Return the URL that `pop` would return, and leave it where it is."""
        while self._timers and self._timers[0][0] <= now:
            _, host = heapq.heappop(self._timers)
            self._hosts[host].has_timer = False
            self._make_available(host, now)
        best = self._best_offer(self._available, room=True)
        return None if best is None else best[1]

    def busy_host_links(self, now: float, above: float, most: int) -> list[BusyHostLink]:
        """Return the best links of hosts without room, the best first.

        Hosts held for ever are not among them.

        Parameters
        ----------
        above : only scores above this
        most : hosts, at most
        """
        found: list[_Offer] = []
        while len(found) < most:
            best = self._best_offer(self._busy, room=False)
            if best is None or -best[0] <= above:
                break
            found.append(heapq.heappop(self._busy))
        for offer in found:
            heapq.heappush(self._busy, offer)
        return [BusyHostLink(-key, url, self._seconds(host, now)) for key, url, host in found]

    def _seconds(self, host: int, now: float) -> float:
        """Return how long a host without room takes for a link, see `BusyHostLink`."""
        state, delay = self._hosts[host], self._delays.get(host, self.delay)
        so_far = now - (state.ready_at - delay) if state.active else 0.0
        return max(delay, state.ready_at - now, so_far)

    def remove(self, url: int) -> None:
        """Take `url` out without fetching it; nothing happens if it does not wait."""
        if url < len(self._state) and self._state.data[url] != NOT_QUEUED:
            self._set_state(url, NOT_QUEUED)

    def defer(self, url: int) -> None:
        """Take `url` out of its queue until it is readmitted; nothing happens if it is in none."""
        if url < len(self._state) and self._state.data[url] == QUEUED:
            self._set_state(url, DEFERRED)

    def readmit(self, urls: Iterable[int]) -> None:
        """Queue those of `urls` that are deferred again."""
        for url in urls:
            if self._state.data[url] == DEFERRED:
                self._set_state(url, QUEUED)
                self._enqueue(url)

    def release(self, url: int, now: float) -> None:
        """Count the request for `url` as no longer in flight."""
        host = int(self._host_of.data[url])
        self._hosts[host].active -= 1
        self._make_available(host, now)

    def set_delay(self, host: int, delay: float) -> None:
        """Set the seconds between the starts of two requests to `host`."""
        self._delays[host] = delay

    def hold(self, host: int, until: float) -> None:
        """Start no request to `host` before `until`; inf: never again."""
        self._grow(0, host + 1)
        state = self._hosts[host]
        if until <= state.ready_at:
            return
        state.ready_at = until
        state.offered = None  # the entry in the heap of hosts is out of date now
        if until == np.inf:
            self._skipped_hosts.add(host)
        self._make_available(host, -np.inf)  # not now: when the time has come

    @property
    def n_at_skipped_hosts(self) -> int:
        """URLs that wait at hosts held for ever."""
        return sum(self._hosts[host].queued for host in self._skipped_hosts)

    def next_ready(self) -> float | None:
        """Return the earliest time at which a host that waits for a timer has room."""
        return self._timers[0][0] if self._timers else None

    def _select_queued(
        self, urls: NDArray[np.int64], scores: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        known = urls < len(self._state)
        urls, scores = urls[known], scores[known]
        waits = (self._state.data[urls] != NOT_QUEUED) & (self._keys.data[urls] != -np.inf)
        return urls[waits], scores[waits]

    def _grow(self, urls: int, hosts: int) -> None:
        """Grow to numbers below `urls` and `hosts`; to some more, as this is called often."""
        if urls > len(self._state):
            for array in (self._keys, self._host_of, self._state):
                array.grow(urls + urls // 8 + 64)
        while len(self._hosts) < hosts:
            self._hosts.append(Host())

    def _free_outdated(self) -> None:
        """Free some of the outdated entries: a million at once take a third of a second."""
        room = _FREED_PER_POP
        while self._outdated and room > 0:
            heap = self._outdated[-1]
            some, room = room, room - len(heap)
            del heap[-some:]
            if not heap:
                self._outdated.pop()

    def _set_state(self, url: int, state: int) -> None:
        was = int(self._state.data[url])
        self._state.data[url] = state
        self._count[was] -= 1
        self._count[state] += 1
        self._hosts[int(self._host_of.data[url])].queued += (state == QUEUED) - (was == QUEUED)

    def _enqueue(self, url: int) -> None:
        host, entry = int(self._host_of.data[url]), (float(self._keys.data[url]), url)
        self._hosts[host].push(entry)
        self._offer(host, entry)

    def _has_free_slot(self, state: Host) -> bool:
        return not state.has_timer and state.active < self.per_host

    def _make_available(self, host: int, now: float) -> None:
        """Offer the best link of `host`: to be fetched now, or when it has room."""
        state = self._hosts[host]
        if self._has_free_slot(state) and state.ready_at > now:
            state.has_timer = True
            if state.ready_at < np.inf:
                heapq.heappush(self._timers, (state.ready_at, host))
        state.offered = None  # what it has offered may be in the other heap
        best = state.best(self._keys.data, self._state.data)
        if best is not None:
            self._offer(host, best)

    def _offer(self, host: int, entry: Entry) -> None:
        state = self._hosts[host]
        if state.offered is not None and entry >= state.offered:
            return
        room = self._has_free_slot(state)
        if not room and state.ready_at == np.inf:
            return
        state.offered = entry
        heap = self._available if room else self._busy
        heapq.heappush(heap, (*entry, host))
        if len(heap) > 2 * len(self._hosts) + 1024:
            heap[:] = [
                (*other.offered, number)
                for number, other in enumerate(self._hosts)
                if other.offered is not None and self._has_free_slot(other) == room
            ]
            heapq.heapify(heap)

    def _best_offer(self, heap: list[_Offer], *, room: bool) -> _Offer | None:
        """Return what is on top of a heap of hosts, after dropping what is outdated.

        Parameters
        ----------
        room : whether it is the heap of the hosts that have room
        """
        while heap:
            key, url, host = heap[0]
            state = self._hosts[host]
            if state.offered == (key, url) and self._has_free_slot(state) == room:
                best = state.best(self._keys.data, self._state.data)
                if best == (key, url):
                    return heap[0]
                state.offered = None
            else:
                best = None  # the host has offered another one since
            heapq.heappop(heap)
            if best is not None:
                self._offer(host, best)
        return None
