"""The frontier: a priority queue of URLs over all hosts that respects the limits of each host."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.frontier.hosts import NOT_QUEUED, QUEUED, Entry, Host

if TYPE_CHECKING:
    from numpy.typing import NDArray


_Offer = tuple[float, int, int]  # key and URL of a host's best link, the host

#: number of halvings of a URL that comes after all URLs with fewer halvings
LAST = 255
_BEYOND = 1e6  # larger than any difference of two scores
_FREED_PER_POP = 4  # outdated entries freed by one `pop`; more would block the event loop


class SortedQueues(NamedTuple):
    """All queued URLs, sorted by host, score and URL id.

    Attributes
    ----------
    scores : float64 (n_urls,), score by URL id
    halvings : uint8 (n_urls,), number of times that the score of each URL is halved
    keys : float64 (n_urls,), negated halved score by URL id
    state : int8 (n_urls,), state of each URL, see `focuscrawl.frontier.hosts`
    runs : id, sorted keys and sorted URL ids of each host with queued URLs
    """

    scores: Floats
    halvings: NDArray[np.uint8]
    keys: Floats
    state: NDArray[np.int8]
    runs: list[tuple[int, Floats, Ints]]

    @classmethod
    def sort(
        cls,
        present: Floats,
        halvings: NDArray[np.uint8],
        state: NDArray[np.int8],
        host_of: NDArray[np.int32],
        *,
        urls: Ints,
        scores: Floats,
    ) -> Self:
        """Give `urls` the new `scores`, and then sort all queued URLs by their halved scores.

        Parameters
        ----------
        present, halvings, state : (n_urls,), present values, which the result takes over
        host_of : int32, host id by URL id
        urls, scores : URL ids and new scores; URL ids beyond `state` and URLs with the score inf
            are skipped
        """
        known = urls < len(state)
        urls, scores = urls[known], scores[known]
        moved = present[urls] != np.inf
        present[urls[moved]] = scores[moved]
        keys = -halve_scores(present, halvings)
        order = np.flatnonzero(state == QUEUED)
        order = order[np.lexsort((order, keys[order], host_of[order]))]
        sorted_keys, sorted_hosts = keys[order], host_of[order]
        bounds = np.flatnonzero(np.diff(sorted_hosts, prepend=-1))
        hosts, starts = sorted_hosts[bounds].tolist(), bounds.tolist()
        runs = [
            (host, sorted_keys[start:end], order[start:end])
            for host, start, end in zip(hosts, starts, [*starts[1:], len(order)], strict=False)
        ]
        return cls(present, halvings, keys, state, runs)


class BusyHostLink(NamedTuple):
    """The best link of a host to which no request may start at present.

    Attributes
    ----------
    score : halved score of the link
    url : URL id of the link
    seconds : expected time of the host for a link: its delay, the rest of a longer wait, or the
        time since an unanswered request
    """

    score: float
    url: int
    seconds: float


def halve_scores(scores: Floats, halvings: NDArray[np.integer[Any]]) -> Floats:
    """Return `scores`, each halved as often as in `halvings` (see `halve_score`), float64 (n,)."""
    if not halvings.any():
        return scores
    exponents = halvings.astype(np.int32)
    halved: Floats = np.ldexp(scores, np.where(scores > 0.0, -exponents, exponents))
    return np.where(exponents == LAST, scores - _BEYOND, halved)


def halve_score(score: float, halvings: int) -> float:
    """Halve a score `halvings` times; double a negative score instead.

    With `LAST` halvings, the result is below all scores with fewer halvings.
    """
    if halvings == LAST:
        return score - _BEYOND
    return math.ldexp(score, -halvings if score > 0.0 else halvings)


class Frontier:
    """Queue of URLs, highest score first; URLs with equal scores are in the order of discovery.

    Each host has a heap of its queued links. A second heap sorts the hosts by the score of their
    best link. The method `pop` returns the best link among the hosts with a free slot, and spends
    no time on busy hosts. URLs and hosts have the ids 0, 1, 2, ... (`NameTable`). Times are given
    in seconds of a monotonic clock.

    Parameters
    ----------
    per_host : largest number of concurrent requests to a host
    delay : seconds between the starts of two requests to a host

    Attributes
    ----------
    on_queued : called with each URL that `push` adds to the queue, or None

    Notes
    -----
    A URL that is pushed with the score inf (a seed) keeps this score in `update` and `rescore`.
    `discount` halves the score of a queued URL as often as given. The halved score determines the
    order, and the score itself stays known.

    The host queues follow Frontera and Heritrix. As in deep-deep, entries with outdated scores
    stay in the heaps and are skipped.
    """

    def __init__(self, per_host: int = 1, delay: float = 0.0) -> None:
        self.per_host = per_host
        self.delay = delay
        self.on_queued: Callable[[int], object] | None = None
        self._delays: dict[int, float] = {}
        self._delayed_until: dict[int, float] = {}  # of the host, by URL in flight
        self._scores = GrowingArray(np.float64, fill=-np.inf)
        self._halvings = GrowingArray(np.uint8)
        self._keys = GrowingArray(np.float64, fill=np.inf)  # negated halved scores
        self._state = GrowingArray(np.int8, fill=NOT_QUEUED)
        self._n_queued = 0
        self._host_of = GrowingArray(np.int32)
        self._hosts: list[Host] = []
        self._available: list[_Offer] = []  # offers of hosts with a free slot
        self._busy: list[_Offer] = []  # offers of busy hosts
        self._timers: list[tuple[float, int]] = []  # ready_at, host
        self._skipped_hosts: set[int] = set()
        self._outdated: list[list[Entry]] = []  # heaps from before the last `replace_queues`

    def __len__(self) -> int:
        """Return the number of queued URLs."""
        return self._n_queued

    def score(self, url: int) -> float:
        """Return the score of `url`, or its last score if not queued; -inf if never queued."""
        return float(self._scores.data[url]) if url < len(self._scores) else -np.inf

    def halved_score(self, url: int) -> float:
        """Return the score of `url` after halving, or its last such score if not queued."""
        return -float(self._keys.data[url])

    def scores(self, urls: Ints) -> Floats:
        """Return the present scores of queued URLs, float64 (n,)."""
        return self._scores.data[urls]

    def halved_scores(self) -> Floats:
        """Return the halved scores of all queued URLs, float64 (n,)."""
        scores: Floats = -self._keys.data[self._state.data == QUEUED]
        return scores

    def queued(self) -> Ints:
        """Return the ids of all queued URLs, ascending."""
        return np.flatnonzero(self._state.data)

    def select_queued(self, urls: Ints) -> Ints:
        """Return those `urls` that are queued."""
        selected: Ints = urls[self._state.data[urls] == QUEUED]
        return selected

    def best_undiscounted(self, urls: Ints) -> int | None:
        """Return the best of those `urls` whose scores are neither inf nor halved, or None.

        Of URLs with equal scores, the method returns the one with the smallest id.
        """
        keys = self._keys.data[urls]
        usable = (self._halvings.data[urls] == 0) & (keys > -np.inf)
        if not usable.any():
            return None
        best = keys[usable].min()
        return int(urls[usable & (keys == best)].min())

    def best_score(self, host: int) -> float | None:
        """Return the best halved score of a host; None if no URL of the host is queued.

        The score is -inf if no request to the host may start now.
        """
        state = self._hosts[host]
        best = state.best(self._keys.data, self._state.data)
        if best is None:
            return None
        return -best[0] if self._has_free_slot(state) else -np.inf

    def push(self, url: int, host: int, score: float) -> None:
        """Queue `url` of `host`, or change the score of a queued URL."""
        self._grow(url + 1, host + 1)
        if self._state.data.item(url) == QUEUED:
            if self._scores.data.item(url) == score:
                return
            self._scores.data[url] = score
            self._set_key(url)
        else:
            self._scores.data[url] = score
            self._halvings.data[url] = 0
            self._keys.data[url] = -score
            self._host_of.data[url] = host
            self._set_state(url, QUEUED)  # last, since `sort_queues` may read in another thread
            if self.on_queued is not None:
                self.on_queued(url)
        self._enqueue(url)

    def discount(self, url: int, halvings: int) -> bool:
        """Set how often the score of `url` is halved; return True if the number has changed.

        Parameters
        ----------
        halvings : number of times that the score is halved; 0 for the score itself
        """
        if self._halvings.data.item(url) == halvings:
            return False
        self._halvings.data[url] = halvings
        if self._state.data.item(url) == QUEUED:
            self._set_key(url)
            self._enqueue(url)
        return True

    def update(self, urls: Ints, scores: Floats) -> None:
        """Set new scores of those `urls` that are queued."""
        urls, scores = self._select_queued(urls, scores)
        for url, score in zip(urls.tolist(), scores.tolist(), strict=True):
            self.push(url, int(self._host_of.data[url]), score)

    def rescore(self, urls: Ints, scores: Floats) -> None:
        """Set new scores like `update`, but faster for many URLs."""
        self.replace_queues(self.sort_queues(urls, scores))

    def sort_queues(self, urls: Ints, scores: Floats) -> SortedQueues:
        """Return all queued URLs sorted by new scores; this method may run in any thread."""
        # copies, since the arrays may change meanwhile
        state = self._state.data.copy()  # first, since this array grows last
        size, host_of = len(state), self._host_of.data
        present, halvings = self._scores.data[:size].copy(), self._halvings.data[:size].copy()
        return SortedQueues.sort(present, halvings, state, host_of, urls=urls, scores=scores)

    def replace_queues(self, sorted_queues: SortedQueues) -> None:
        """Replace the queues by the result of `sort_queues`; leave out URLs removed meanwhile.

        The method blocks the event loop, so it contains no loop over all URLs. As the best link of
        a host, the frontier uses the link that was best when the queues were sorted; `pop` skips
        the link if it is outdated.
        """
        new, halvings, new_keys, then, runs = sorted_queues
        size = len(new)
        scores, known = self._scores.data[:size], then != NOT_QUEUED
        first = known & (scores == np.inf)  # pushed with the score inf after the sorting
        np.copyto(scores, new, where=known & ~first)
        np.copyto(self._keys.data[:size], new_keys, where=known & ~first)
        first &= new != np.inf
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
        since[:size] &= (then != QUEUED) | first | (self._halvings.data[:size] != halvings)
        for url in np.flatnonzero(since).tolist():
            self._set_key(url)
            self._enqueue(url)

    def load(self, urls: Ints, hosts: Ints, scores: Floats) -> None:
        """Queue many URLs at once; none of the URLs may already be queued."""
        if not len(urls):
            return
        self._grow(int(urls.max()) + 1, int(hosts.max()) + 1)
        self._scores.data[urls] = scores
        self._halvings.data[urls] = 0
        self._keys.data[urls] = -scores
        self._state.data[urls] = QUEUED
        self._host_of.data[urls] = hosts
        for host, count in enumerate(np.bincount(hosts, minlength=len(self._hosts)).tolist()):
            self._hosts[host].queued += count
        self._n_queued += len(urls)
        self.rescore(urls, scores)

    def pop(self, now: float) -> int | None:
        """Remove and return the best URL whose host has a free slot; None if no slot is free.

        The returned URL is in flight until `release` is called.
        """
        url = self.peek(now)
        if url is not None:
            self.take(url, now)
        return url

    def take(self, url: int, now: float) -> None:
        """Remove a queued URL whose host has a free slot; the URL is in flight then."""
        self._free_outdated()
        host = self._host_of.data.item(url)
        state = self._hosts[host]
        if state.offered is not None and state.offered[1] == url:
            state.offered = None
        self._set_state(url, NOT_QUEUED)
        state.active += 1
        state.ready_at = now + self._delays.get(host, self.delay)
        self._delayed_until[url] = state.ready_at
        self._make_available(host, now)

    def peek(self, now: float) -> int | None:
        """Return the URL that `pop` would return, without removing the URL."""
        while self._timers and self._timers[0][0] <= now:
            _, host = heapq.heappop(self._timers)
            self._hosts[host].has_timer = False
            self._make_available(host, now)
        best = self._best_offer(self._available, has_free_slot=True)
        return None if best is None else best[1]

    def busy_host_links(self, now: float, above: float, max_hosts: int) -> list[BusyHostLink]:
        """Return the best links of a limited number of busy hosts, one link per host, best first.

        The result has no links of hosts that the crawl has stopped fetching from.

        Parameters
        ----------
        above : only links with higher scores are returned
        """
        found: list[_Offer] = []
        while len(found) < max_hosts:
            best = self._best_offer(self._busy, has_free_slot=False)
            if best is None or -best[0] <= above:
                break
            found.append(heapq.heappop(self._busy))
        for offer in found:
            heapq.heappush(self._busy, offer)
        return [BusyHostLink(-key, url, self._seconds(host, now)) for key, url, host in found]

    def _seconds(self, host: int, now: float) -> float:
        """Return the expected time of a busy host for a link, see `BusyHostLink`."""
        state, delay = self._hosts[host], self._delays.get(host, self.delay)
        elapsed = now - (state.ready_at - delay) if state.active else 0.0
        return max(delay, state.ready_at - now, elapsed)

    def remove(self, url: int) -> None:
        """Remove `url` from the frontier, if the URL is queued."""
        if url < len(self._state) and self._state.data[url] != NOT_QUEUED:
            self._set_state(url, NOT_QUEUED)

    def release(self, url: int, now: float) -> None:
        """Record that the request for `url` is no longer in flight."""
        host = self._host_of.data.item(url)
        self._delayed_until.pop(url, None)
        self._hosts[host].active -= 1
        self._make_available(host, now)

    def cancel_delay(self, url: int, now: float) -> None:
        """Cancel the delay of a host, because the request that caused the delay was not sent."""
        host = int(self._host_of.data[url])
        state = self._hosts[host]
        if state.ready_at != self._delayed_until.get(url):
            return  # a later request or `hold` determines when the host is ready
        state.ready_at = now
        state.has_timer = False
        self._make_available(host, now)

    def set_limit(self, host: int, limit: int) -> None:
        """Set the maximum number of concurrent requests to `host`."""
        self._grow(0, host + 1)
        self._hosts[host].limit = limit

    def set_delay(self, host: int, delay: float) -> None:
        """Set the minimum time in seconds between the starts of two requests to `host`."""
        self._delays[host] = delay

    def hold(self, host: int, until: float) -> None:
        """Start no request to `host` before the time `until`; skip the host if `until` is inf."""
        self._grow(0, host + 1)
        state = self._hosts[host]
        if until <= state.ready_at:
            return
        state.ready_at = until
        state.offered = None  # the entry in the heap of hosts is outdated
        if until == np.inf:
            self._skipped_hosts.add(host)
        self._make_available(host, -np.inf)  # sets a timer

    @property
    def n_at_skipped_hosts(self) -> int:
        """Number of queued URLs at skipped hosts."""
        return sum(self._hosts[host].queued for host in self._skipped_hosts)

    def next_ready(self) -> float | None:
        """Return the earliest time at which a host's delay ends; None if no host is delayed."""
        return self._timers[0][0] if self._timers else None

    def _select_queued(self, urls: Ints, scores: Floats) -> tuple[Ints, Floats]:
        known = urls < len(self._state)
        urls, scores = urls[known], scores[known]
        queued = (self._state.data[urls] != NOT_QUEUED) & (self._scores.data[urls] != np.inf)
        return urls[queued], scores[queued]

    def _grow(self, urls: int, hosts: int) -> None:
        """Extend the arrays to ids below `urls` and `hosts`, with a reserve for later calls."""
        if urls > len(self._state):
            for array in (self._scores, self._halvings, self._keys, self._host_of, self._state):
                array.grow(urls + urls // 8 + 64)
        while len(self._hosts) < hosts:
            self._hosts.append(Host(self.per_host))

    def _free_outdated(self) -> None:
        """Free a few outdated entries, as freeing a million takes a third of a second."""
        remaining = _FREED_PER_POP
        while self._outdated and remaining > 0:
            heap = self._outdated[-1]
            count, remaining = remaining, remaining - len(heap)
            del heap[-count:]
            if not heap:
                self._outdated.pop()

    def _set_state(self, url: int, state: int) -> None:
        added = state - self._state.data.item(url)
        self._state.data[url] = state
        self._n_queued += added
        self._hosts[self._host_of.data.item(url)].queued += added

    def _set_key(self, url: int) -> None:
        score, halvings = self._scores.data.item(url), self._halvings.data.item(url)
        self._keys.data[url] = -halve_score(score, halvings) if halvings else -score

    def _enqueue(self, url: int) -> None:
        host, entry = self._host_of.data.item(url), (self._keys.data.item(url), url)
        self._hosts[host].push(entry)
        self._offer(host, entry)

    def _has_free_slot(self, state: Host) -> bool:
        return not state.has_timer and state.active < state.limit

    def _make_available(self, host: int, now: float) -> None:
        """Offer the best link of `host` in the heap of available or of busy hosts."""
        state = self._hosts[host]
        free = self._has_free_slot(state)
        if free and state.ready_at > now:
            state.has_timer, free = True, False
            if state.ready_at < np.inf:
                heapq.heappush(self._timers, (state.ready_at, host))
        # the last offer may be in the other heap; `_best_offer` tells whether it is outdated
        best = state.offered or state.best(self._keys.data, self._state.data)
        state.offered = None
        if best is not None:
            self._push_offer(host, best, free)

    def _offer(self, host: int, entry: Entry) -> None:
        state = self._hosts[host]
        if state.offered is None or entry < state.offered:
            self._push_offer(host, entry, self._has_free_slot(state))

    def _push_offer(self, host: int, entry: Entry, free: bool) -> None:
        state = self._hosts[host]
        if not free and state.ready_at == np.inf:
            return
        state.offered = entry
        heap = self._available if free else self._busy
        heapq.heappush(heap, (*entry, host))
        if len(heap) > 2 * len(self._hosts) + 1024:
            heap[:] = [
                (*other.offered, host_id)
                for host_id, other in enumerate(self._hosts)
                if other.offered is not None and self._has_free_slot(other) == free
            ]
            heapq.heapify(heap)

    def _best_offer(self, heap: list[_Offer], *, has_free_slot: bool) -> _Offer | None:
        """Drop outdated offers of a heap of hosts; return the best offer.

        Parameters
        ----------
        has_free_slot : whether the heap is that of the hosts with a free slot
        """
        while heap:
            key, url, host = heap[0]
            state = self._hosts[host]
            if state.offered == (key, url) and self._has_free_slot(state) == has_free_slot:
                best = state.best(self._keys.data, self._state.data)
                if best == (key, url):
                    return heap[0]
                state.offered = None
            else:
                best = None  # the host has a newer offer
            heapq.heappop(heap)
            if best is not None:
                self._offer(host, best)
        return None
