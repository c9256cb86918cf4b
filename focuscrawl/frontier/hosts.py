"""The hosts of the frontier and their queues."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Floats, Ints


#: state of a URL: in flight, fetched or unknown; in the queue of its host
NOT_QUEUED, QUEUED = range(2)
#: event of a host that is skipped after failures; detail: ``host: reason``
HOST_SKIPPED = "left"

Entry = tuple[float, int]  # key (negated score, for a min-heap), URL id
_NO_KEYS, _NO_URLS = np.empty(0), np.empty(0, dtype=np.int64)


class NameTable:
    """Assigns the ids 0, 1, 2, ... to strings in the order of their first appearance."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = list(names)
        self._ids = {name: i for i, name in enumerate(self._names)}

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, i: int) -> str:
        return self._names[i]

    def get(self, name: str) -> int | None:
        """Return the id of `name`; None if `name` has no id."""
        return self._ids.get(name)

    def add(self, name: str) -> tuple[int, bool]:
        """Return the id of `name`, and whether the id is new."""
        new = len(self._names)
        i = self._ids.setdefault(name, new)
        if i == new:
            self._names.append(name)
        return i, i == new


class Host:
    """The queued links of a host, and its politeness state (delay, requests in flight).

    Links that were queued at the last sorting of the whole frontier are in a sorted list, and
    later links are in a heap. An entry of the queue is outdated if its URL has left the queue or
    has another score. Outdated entries stay in the queue, and are skipped.

    Attributes
    ----------
    active : number of requests in flight
    limit : largest number of requests in flight
    queued : number of queued URLs
    ready_at : earliest start of the next request, in seconds of the clock of the crawl
    has_timer : whether a timer will make the host available
    offered : entry of the host in the heap of hosts, or None
    """

    __slots__ = (
        "_at",
        "_heap",
        "_run_keys",
        "_run_urls",
        "active",
        "has_timer",
        "limit",
        "offered",
        "queued",
        "ready_at",
    )

    def __init__(self, limit: int) -> None:
        self._heap: list[Entry] = []
        self._run_keys: Floats = _NO_KEYS
        self._run_urls: Ints = _NO_URLS
        self._at = 0
        self.active = 0
        self.limit = limit
        self.queued = 0
        self.ready_at = 0.0
        self.has_timer = False
        self.offered: Entry | None = None

    def push(self, entry: Entry) -> None:
        """Add a link."""
        heapq.heappush(self._heap, entry)

    def clear(self) -> list[Entry]:
        """Remove all links of the host; return the old heap, which the caller can free later."""
        heap, self._heap = self._heap, []
        self._run_keys, self._run_urls, self._at = _NO_KEYS, _NO_URLS, 0
        self.offered = None
        return heap

    def replace(self, keys: Floats, urls: Ints) -> None:
        """Replace the sorted list of links; the new entries must be sorted, the best first."""
        self._run_keys, self._run_urls = keys, urls

    def best(self, keys: Floats, state: NDArray[np.int8]) -> Entry | None:
        """Return the best link, or None if no link is queued.

        The arrays `keys` and `state` contain the current key and state of each URL, by URL id.
        """
        heap = self._heap
        if len(heap) > 4 * self.queued + 64:
            heap = self._heap = [
                (key, url) for key, url in set(heap) if state[url] == QUEUED and keys[url] == key
            ]
            heapq.heapify(heap)
        # `item` takes a third of the time of an index
        while heap and not (
            state.item(heap[0][1]) == QUEUED and keys.item(heap[0][1]) == heap[0][0]
        ):
            heapq.heappop(heap)
        run_keys, run_urls = self._run_keys, self._run_urls
        for at in range(self._at, len(run_urls)):
            head = run_keys.item(at), run_urls.item(at)
            if state.item(head[1]) == QUEUED and keys.item(head[1]) == head[0]:
                self._at = at
                return heap[0] if heap and heap[0] < head else head
        self._at = len(run_urls)
        return heap[0] if heap else None
