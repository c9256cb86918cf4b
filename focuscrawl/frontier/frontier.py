"""One global order over all queued links that respects every host's limits."""

from __future__ import annotations

import heapq
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.foundation.arrays import GrowingArray
from focuscrawl.frontier.hosts import Entry, Host
from focuscrawl.frontier.outlook import outlook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

_SIFTED = 2000  # URLs that one `pop` may hold back; more would hold the event loop
_FREED = 4  # entries out of date whose memory one `pop` frees, for the same reason


class Arrangement(NamedTuple):
    """All that waits, sorted by host, key and URL.

    Attributes
    ----------
    keys : float64 (n,) of URL numbers below n, scores negated
    waiting : bool (n,), those that wait in the queue
    known : bool (n,), those that wait or are held back
    runs : number, keys and URLs of each host with URLs in the queue, best first
    """

    keys: NDArray[np.float64]
    waiting: NDArray[np.bool_]
    known: NDArray[np.bool_]
    runs: list[tuple[int, NDArray[np.float64], NDArray[np.int64]]]


class Frontier:
    """Queued URLs in the order of their scores, highest first, discovery order among equals.

    A heap of links per host and a heap of hosts by their best link: `pop` gives the best link
    whose host has room, and a host without room costs nothing until it has. URLs and hosts are
    dense numbers (`NameTable`); times are seconds on any steady clock.

    Parameters
    ----------
    per_host : requests to one host that may be under way at once
    delay : seconds from the start of one request to a host to the start of the next

    Attributes
    ----------
    admits : asked of each URL that `pop` is about to give out, seeds excepted: False holds it
        back until `readmit`. It goes on waiting, and its score may change. None: no such limits
    sifting : the last `pop` found nothing but URLs to hold back, and is not yet through

    A URL pushed with the score inf (a seed) keeps it: `update` and `rescore` pass it over.

    Notes
    -----
    After Frontera's and Heritrix's host queues; mutable priorities by entries that are dropped
    when found out of date, as in deep-deep.
    """

    def __init__(self, per_host: int = 1, delay: float = 0.0) -> None:
        self.per_host = per_host
        self._delay = delay
        self._delays: dict[int, float] = {}
        self._keys = GrowingArray(np.float64, fill=np.inf)
        self._queued = GrowingArray(np.bool_, fill=False)
        self._host_of = GrowingArray(np.int32)
        self._hosts: list[Host] = []
        self._available: list[tuple[float, int, int]] = []  # key, URL, host
        self._timers: list[tuple[float, int]] = []  # ready_at, host
        self._length = 0
        self._left: set[int] = set()
        self._held = GrowingArray(np.bool_, fill=False)  # waits, in no heap
        self._n_held = 0
        self._out_of_date: list[list[Entry]] = []  # heaps from before the last `adopt`
        self.admits: Callable[[int], bool] | None = None
        self.sifting = False

    def __len__(self) -> int:
        """URLs waiting, held back or not."""
        return self._length + self._n_held

    @property
    def all_held(self) -> bool:
        """True if URLs are held back, and none waits but on hosts that are left alone."""
        return self._n_held > 0 and self._length == self.left

    def score(self, url: int) -> float:
        """Return the present or last score of `url`; -inf if it was never queued."""
        return -float(self._keys.data[url]) if url < len(self._keys) else -np.inf

    def scores(self, urls: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the present scores of URLs that wait, float64 (n,)."""
        scores: NDArray[np.float64] = -self._keys.data[urls]
        return scores

    def queued(self) -> NDArray[np.int64]:
        """Return the numbers of all URLs that wait, ascending."""
        return np.flatnonzero(self._queued.data | self._held.data)

    def push(self, url: int, host: int, score: float) -> None:
        """Queue `url` of `host`, or move it to `score` if it waits already."""
        self._make_room(url + 1, host + 1)
        keys, queued, state = self._keys.data, self._queued.data, self._hosts[host]
        if queued[url] and keys[url] == -score:
            return
        keys[url] = -score
        if self._held.data[url]:
            if score != np.inf:
                return
            self._let_go(url)
        if not queued[url]:
            self._host_of.data[url] = host
            queued[url] = True  # last: `arrange` may be reading in another thread
            state.queued += 1
            self._length += 1
        entry = (-score, url)
        state.push(entry)
        if not state.timed and state.active < self.per_host:
            self._offer(host, entry)

    def update(self, urls: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        """Move the URLs among `urls` that wait to their new `scores`."""
        urls, scores = self._waiting(urls, scores)
        for url, score in zip(urls.tolist(), scores.tolist(), strict=True):
            self.push(url, int(self._host_of.data[url]), score)

    def rescore(self, urls: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        """Like `update`, for so many URLs that sorting all anew is cheaper."""
        self.adopt(self.arrange(urls, scores))

    def arrange(self, urls: NDArray[np.int64], scores: NDArray[np.float64]) -> Arrangement:
        """Sort all that waits as `rescore` would; changes nothing and may run in any thread."""
        # views: the arrays may grow, or be changed, meanwhile
        waiting = self._queued.data.copy()  # first: it grows last
        size = len(waiting)
        keys, host_of = self._keys.data[:size].copy(), self._host_of.data
        known = waiting | self._held.data[:size]
        there = urls < size
        urls, scores = urls[there], scores[there]
        moved = keys[urls] != -np.inf
        keys[urls[moved]] = -scores[moved]
        order = np.flatnonzero(waiting)
        order = order[np.lexsort((order, keys[order], host_of[order]))]
        sorted_keys, sorted_hosts = keys[order], host_of[order]
        bounds = np.flatnonzero(np.diff(sorted_hosts, prepend=-1))
        hosts, starts = sorted_hosts[bounds].tolist(), bounds.tolist()
        runs = [
            (host, sorted_keys[start:end], order[start:end])
            for host, start, end in zip(hosts, starts, [*starts[1:], len(order)], strict=False)
        ]
        return Arrangement(keys, waiting, known, runs)

    def adopt(self, arrangement: Arrangement) -> None:
        """Take over what `arrange` has sorted; URLs that left the queue since stay out.

        The event loop stands still meanwhile, so nothing is looked at URL by URL: hosts offer
        what was their best when all was sorted, and `pop` finds out what is not any more.
        """
        new, waiting, known, runs = arrangement
        size = len(new)
        keys = self._keys.data[:size]
        first = known & (keys == -np.inf)  # put first since all was sorted
        np.copyto(keys, new, where=known & ~first)
        first &= new != -np.inf
        for state in self._hosts:
            if heap := state.clear():
                self._out_of_date.append(heap)
        self._available = []
        for host, run_keys, run_urls in runs:
            state = self._hosts[host]
            state.replace(run_keys, run_urls)
            if not state.timed and state.active < self.per_host:
                state.offered = float(run_keys[0]), int(run_urls[0])
                self._available.append((*state.offered, host))
        heapq.heapify(self._available)
        since = self._queued.data.copy()
        since[:size] &= ~waiting | first
        for url in np.flatnonzero(since).tolist():
            host, entry = int(self._host_of.data[url]), (float(self._keys.data[url]), url)
            state = self._hosts[host]
            state.push(entry)
            if not state.timed and state.active < self.per_host:
                self._offer(host, entry)

    def load(
        self, urls: NDArray[np.int64], hosts: NDArray[np.int64], scores: NDArray[np.float64]
    ) -> None:
        """Queue many URLs at once, none of which waits."""
        if not len(urls):
            return
        self._make_room(int(urls.max()) + 1, int(hosts.max()) + 1)
        self._keys.data[urls] = -scores
        self._queued.data[urls] = True
        self._host_of.data[urls] = hosts
        for host, count in enumerate(np.bincount(hosts, minlength=len(self._hosts)).tolist()):
            self._hosts[host].queued += count
        self._length += len(urls)
        self.rescore(urls, scores)

    def pop(self, now: float) -> int | None:
        """Take the best URL whose host has room; None when no host has.

        The URL's request counts as under way until `release`.
        """
        self.sifting = False
        self._free()
        found = self._best(now)
        if found is None:
            return None
        key, url, host = found
        state = self._hosts[host]
        self._leave(url)
        state.take((key, url))
        state.active += 1
        state.ready_at = now + self._delays.get(host, self._delay)
        self._make_available(host, now)
        return url

    def peek(self, now: float) -> float | None:
        """Return the score of what `pop` would give out, and leave it where it is."""
        found = self._best(now)
        if found is None:
            return None
        key, url, host = found
        self._offer(host, (key, url))
        return -key

    def outlook(self, most: int) -> tuple[list[float], list[int]]:
        """Return scores and hosts of the next `most` URLs that `pop` would give out, best first.

        As if every request were answered at once; with a delay, a host is good for one URL.
        """
        each = 1 if self._delay else most
        found = outlook(self._available, self._hosts, self._keys.data, self._queued.data, each)
        best = list(islice(found, most))
        return [-key for key, _ in best], [host for _, host in best]

    def remove(self, url: int) -> None:
        """Take `url` out without fetching it; nothing happens if it does not wait."""
        if url < len(self._queued) and self._queued.data[url]:
            self._leave(url)
        elif url < len(self._held) and self._held.data[url]:
            self._let_go(url)

    def held(self) -> list[int]:
        """Return the numbers of all URLs that are held back, ascending."""
        return np.flatnonzero(self._held.data).tolist()

    def readmit(self, urls: Iterable[int]) -> None:
        """Let those of `urls` that are held back take their places again."""
        for url in urls:
            if self._held.data[url]:
                self._let_go(url)
                self.push(url, int(self._host_of.data[url]), self.score(url))

    def release(self, url: int, now: float) -> None:
        """Say that the request for `url` is no longer under way."""
        host = int(self._host_of.data[url])
        self._hosts[host].active -= 1
        self._make_available(host, now)

    def set_delay(self, host: int, delay: float) -> None:
        """Set the seconds between the starts of two requests to `host`."""
        self._delays[host] = delay

    def hold(self, host: int, until: float) -> None:
        """Start no request to `host` before `until`; inf: never again."""
        self._make_room(0, host + 1)
        state = self._hosts[host]
        if until <= state.ready_at:
            return
        state.ready_at = until
        state.offered = None  # the entry in the heap of hosts is out of date now
        if until == np.inf:
            self._left.add(host)
        self._make_available(host, -np.inf)  # not now: when the time has come

    @property
    def left(self) -> int:
        """URLs that wait at hosts held for ever."""
        return sum(self._hosts[host].queued for host in self._left)

    def next_ready(self) -> float | None:
        """Return the earliest time at which a host that waits for a timer has room."""
        return self._timers[0][0] if self._timers else None

    def _best(self, now: float) -> tuple[float, int, int] | None:
        """Take key, URL and host of the best link whose host has room out of the offers."""
        sifted = 0
        while self._timers and self._timers[0][0] <= now:
            _, host = heapq.heappop(self._timers)
            self._hosts[host].timed = False
            self._make_available(host, now)
        while self._available:
            key, url, host = heapq.heappop(self._available)
            state = self._hosts[host]
            if state.offered != (key, url):
                continue  # the host has offered a better one since
            state.offered = None
            best = state.best(self._keys.data, self._queued.data)
            if best != (key, url):
                if best is not None:
                    self._offer(host, best)
                continue
            if self.admits is None or key == -np.inf or self.admits(url):
                return key, url, host
            self._put_aside(url)
            state.take(best)
            self._make_available(host, now)
            sifted += 1
            if sifted == _SIFTED:
                self.sifting = True
                break
        return None

    def _waiting(
        self, urls: NDArray[np.int64], scores: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        known = urls < len(self._queued)
        urls, scores = urls[known], scores[known]
        waiting = self._queued.data[urls] | self._held.data[urls]
        waits = waiting & (self._keys.data[urls] != -np.inf)
        return urls[waits], scores[waits]

    def _make_room(self, urls: int, hosts: int) -> None:
        """Have room for numbers below `urls` and `hosts`; some more, as this is asked often."""
        if urls > len(self._queued):
            for array in (self._keys, self._host_of, self._held, self._queued):
                array.grow(urls + urls // 8 + 64)
        while len(self._hosts) < hosts:
            self._hosts.append(Host())

    def _free(self) -> None:
        """Free some of the entries out of date: a million at once take a third of a second."""
        room = _FREED
        while self._out_of_date and room > 0:
            heap = self._out_of_date[-1]
            some, room = room, room - len(heap)
            del heap[-some:]
            if not heap:
                self._out_of_date.pop()

    def _put_aside(self, url: int) -> None:
        self._held.data[url] = True  # first: `arrange` may be reading in another thread
        self._n_held += 1
        self._leave(url)

    def _let_go(self, url: int) -> None:
        self._held.data[url] = False
        self._n_held -= 1

    def _leave(self, url: int) -> None:
        self._queued.data[url] = False
        self._hosts[int(self._host_of.data[url])].queued -= 1
        self._length -= 1

    def _make_available(self, host: int, now: float) -> None:
        """Offer the best link of `host`, now or when its delay is over."""
        state = self._hosts[host]
        if state.timed or state.active >= self.per_host:
            return
        if state.ready_at > now:
            state.timed = True
            if state.ready_at < np.inf:
                heapq.heappush(self._timers, (state.ready_at, host))
            return
        best = state.best(self._keys.data, self._queued.data)
        if best is not None:
            self._offer(host, best)

    def _offer(self, host: int, entry: Entry) -> None:
        state = self._hosts[host]
        if state.offered is None or entry < state.offered:
            state.offered = entry
            heapq.heappush(self._available, (*entry, host))
            if len(self._available) > 2 * len(self._hosts) + 1024:
                self._available = [
                    (*other.offered, number)
                    for number, other in enumerate(self._hosts)
                    if other.offered is not None
                ]
                heapq.heapify(self._available)
