"""Hosts of the frontier: their queues, and the back-off after failures."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


#: where a URL is: in flight, done or never seen; in the queue of its host; waiting, in no queue
NOT_QUEUED, QUEUED, DEFERRED = range(3)
#: the event of a host that is left alone; detail: ``host: why``
HOST_SKIPPED = "left"

Entry = tuple[float, int]  # key (the score negated, so that the least comes first), URL
_NO_KEYS, _NO_URLS = np.empty(0), np.empty(0, dtype=np.int64)


class NameTable:
    """Numbers strings 0, 1, 2, ... in the order they are first seen."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = list(names)
        self._ids = {name: i for i, name in enumerate(self._names)}

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, i: int) -> str:
        return self._names[i]

    def get(self, name: str) -> int | None:
        """Return the number of `name`, None if it has none."""
        return self._ids.get(name)

    def add(self, name: str) -> tuple[int, bool]:
        """Return the number of `name` and whether it is new."""
        new = len(self._names)
        i = self._ids.setdefault(name, new)
        if i == new:
            self._names.append(name)
        return i, i == new


class Host:
    """Queue of one host's links, and its politeness state.

    Links are in a *run*, sorted when the frontier was loaded or re-scored as a whole, and later
    ones in a heap. Entries are not removed when a score changes: an entry is outdated once its URL
    has left the queue or has another key, and is skipped then.

    Attributes
    ----------
    active : requests in flight
    queued : URLs waiting
    ready_at : seconds on the crawl's clock; no request starts before
    timed : True while a timer will make the host available
    offered : the entry that stands for this host in the heap of hosts, None without one
    """

    __slots__ = (
        "_at",
        "_heap",
        "_run_keys",
        "_run_urls",
        "active",
        "has_timer",
        "offered",
        "queued",
        "ready_at",
    )

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._run_keys: NDArray[np.float64] = _NO_KEYS
        self._run_urls: NDArray[np.int64] = _NO_URLS
        self._at = 0
        self.active = 0
        self.queued = 0
        self.ready_at = 0.0
        self.has_timer = False
        self.offered: Entry | None = None

    def push(self, entry: Entry) -> None:
        """Add a link."""
        heapq.heappush(self._heap, entry)

    def drop_best(self, best: Entry) -> None:
        """Drop the entry that `best` has returned."""
        if self._heap and self._heap[0] == best:
            heapq.heappop(self._heap)
        else:
            self._at += 1

    def clear(self) -> list[Entry]:
        """Drop all entries, and what is offered; return the heap, which takes time to free."""
        # one by one, a million outdated entries in the heap take a second to drop
        heap, self._heap = self._heap, []
        self._run_keys, self._run_urls, self._at = _NO_KEYS, _NO_URLS, 0
        self.offered = None
        return heap

    def replace(self, keys: NDArray[np.float64], urls: NDArray[np.int64]) -> None:
        """Set the run: entries sorted best first."""
        self._run_keys, self._run_urls = keys, urls

    def best(self, keys: NDArray[np.float64], state: NDArray[np.int8]) -> Entry | None:
        """Return the best link, None when there is none.

        Parameters
        ----------
        keys, state : for every URL, its present key and where it is
        """
        heap = self._heap
        if len(heap) > 4 * self.queued + 64:
            heap = self._heap = [
                (key, url) for key, url in set(heap) if state[url] == QUEUED and keys[url] == key
            ]
            heapq.heapify(heap)
        while heap and not (state[heap[0][1]] == QUEUED and keys[heap[0][1]] == heap[0][0]):
            heapq.heappop(heap)
        at, end = self._at, len(self._run_urls)
        while at < end:
            url = self._run_urls[at]
            if state[url] == QUEUED and keys[url] == self._run_keys[at]:
                break
            at += 1
        self._at = at
        if at == end:
            return heap[0] if heap else None
        head = (float(self._run_keys[at]), int(self._run_urls[at]))
        return heap[0] if heap and heap[0] < head else head


class HostBackoff:
    """A wait for every request in a row that a host left without an answer, doubled each time.

    Parameters
    ----------
    first, longest : seconds; waits double from the one to the other
    failures : requests without an answer in a row after which a host is left alone; 0: never
    per_host : requests to a host at a time, which may fail together

    Notes
    -----
    A host that asks for a wait (``Retry-After``, RFC 9110 section 10.2.3) gets it; one that asks
    for more than `longest` is left alone, so that the crawl does not stand still.
    """

    def __init__(self, first: float, longest: float, failures: int = 0, per_host: int = 1) -> None:
        self._first = first
        self._longest = longest
        self._failures = failures * per_host
        self._per_host = per_host
        self._in_a_row: Counter[int] = Counter()

    def record_answer(self, host: int) -> None:
        """Forget the failures of `host`."""
        self._in_a_row.pop(host, None)

    def record_failure(self, host: int, retry_after: float | None = None) -> float:
        """Count a request without an answer.

        Parameters
        ----------
        retry_after : seconds that the host asked for

        Returns
        -------
        Seconds until the next request to the host; inf: none while the crawl runs.
        """
        self._in_a_row[host] += 1
        count = self._in_a_row[host]
        if retry_after is not None and retry_after > self._longest:
            return math.inf
        if 0 < self._failures <= count:
            return math.inf
        doublings = min((count - 1) // self._per_host, 60)
        wait = min(self._first * 2.0**doublings, self._longest)
        return max(wait, retry_after or 0.0)


def read_retry_after(text: str, now: datetime) -> float | None:
    """Read a ``Retry-After`` header, seconds or a date.

    Returns
    -------
    Seconds from `now`, 0 or more; None if it says neither.
    """
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return float(text[:18])  # more digits are for ever all the same
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - now).total_seconds())
