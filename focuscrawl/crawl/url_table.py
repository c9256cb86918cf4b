"""Every URL a crawl knows, in columns; and which URLs are of one pattern."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation.arrays import GrowingArray
from focuscrawl.foundation.urls import host
from focuscrawl.frontier import NameTable
from focuscrawl.store import NewUrl
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from focuscrawl.frontier import Frontier
    from focuscrawl.store import VisitRecord


_CHANGING = re.compile(r"(?=[a-f]*[0-9])[0-9a-f]{8,}|[0-9]+")  # numbers, dates, session ids
_DEEP = 12  # segments of a path
_KEYS = 6  # arguments of a query
_TWICE = re.compile(r"((?:/[^/]+){1,4})\1{2}(?=/|$)")  # after two more times it is no accident


@lru_cache(maxsize=1024)  # a page is looked up with every page found on it
def url_pattern(url: str) -> str:
    """Return the pattern of a normalised `url`: its host, its folder and its query's names.

    All numbers are one, as are all last segments; values of arguments and their order do not
    count. Paths that repeat themselves are one pattern a host, and so are very deep ones.

    >>> url_pattern("https://a.example/wiki/2019/Start?version=3&action=diff")
    'a.example/wiki/#/*?action&version'
    """
    address, _, query = url.partition("?")
    host, _, path = address.partition("://")[2].partition("/")
    path = f"/{path}".partition(";")[0]
    if _TWICE.search(path):
        return f"{host}/… (segments that repeat)"
    segments = path.rstrip("/").split("/")[1:]
    if len(segments) > _DEEP:
        return f"{host}/… (more than {_DEEP} levels)"
    folder = "/".join([host, *(_CHANGING.sub("#", each) for each in segments[:-1]), "*"])
    if not query:
        return folder
    names = sorted({_CHANGING.sub("#", part.partition("=")[0]) for part in query.split("&")})
    shown = "&".join(names) if len(names) <= _KEYS else f"… (more than {_KEYS} arguments)"
    return f"{folder}?{shown}"


class UrlTable:
    """Numbers URLs and hosts, and has the state and score of each URL.

    Changes are collected until `flush` moves them into the record of a transaction.
    """

    def __init__(self) -> None:
        self._urls = NameTable()
        self._hosts = NameTable()
        self._host = GrowingArray(np.int32)
        self._depth = GrowingArray(np.int32)
        self._referrer = GrowingArray(np.int64, fill=-1)
        self._score = GrowingArray(np.float64, fill=np.nan)
        self._state = GrowingArray(np.uint8, fill=UNFOLLOWED)
        self._stored_urls = 0
        self._stored_hosts = 0
        self._changed: set[int] = set()

    def __len__(self) -> int:
        return len(self._urls)

    def __getitem__(self, number: int) -> str:
        return self._urls[number]

    def get(self, url: str) -> int | None:
        """Return the number of `url`, None if the crawl has never seen it."""
        return self._urls.get(url)

    def add(self, url: str, depth: int, referrer: int | None) -> int:
        """Return the number of `url`; a new one gets `depth`, `referrer` and no score."""
        number, new = self._urls.add(url)
        if new:
            self._make_room(number + 1)
            self._host.data[number] = self._hosts.add(host(url))[0]
            self._depth.data[number] = depth
            if referrer is not None:
                self._referrer.data[number] = referrer
        return number

    def load_hosts(self, names: Iterable[str]) -> None:
        """Load hosts from the store, in the order of their numbers."""
        for name in names:
            self._hosts.add(name)
        self._stored_hosts = len(self._hosts)

    def load(self, rows: Sequence[NewUrl]) -> None:
        """Load URLs from the store, in the order of their numbers, after their hosts.

        ValueError if a host is missing: the store is damaged.
        """
        start, end = len(self._urls), len(self._urls) + len(rows)
        _, urls, hosts, depths, referrers, scores, states = zip(*rows, strict=True)
        if not 0 <= min(hosts) <= max(hosts) < len(self._hosts):
            msg = "a host that there is not"
            raise ValueError(msg)
        for url in urls:
            self._urls.add(url)
        self._make_room(end)
        self._host.data[start:end] = hosts
        self._depth.data[start:end] = depths
        self._referrer.data[start:end] = [-1 if each is None else each for each in referrers]
        self._score.data[start:end] = np.array(scores, dtype=np.float64)  # None becomes nan
        self._state.data[start:end] = states
        self._stored_urls = end

    def _make_room(self, length: int) -> None:
        """Grow the columns to at least `length`; to more, as this is called for every URL."""
        if length > len(self._state):
            for column in (self._host, self._depth, self._referrer, self._score, self._state):
                column.grow(length + length // 8 + 64)

    def queued(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the numbers, hosts and scores of all URLs that wait; inf for a seed."""
        urls = np.flatnonzero(self._state.data[: len(self._urls)] == QUEUED)
        scores = self._score.data[urls]
        scores[np.isnan(scores)] = np.inf
        return urls, self._host.data[urls].astype(np.int64), scores

    def host_ids(self) -> NDArray[np.int64]:
        """Return the number of the host of each URL, int64 (n_urls,)."""
        return self._host.data[: len(self._urls)].astype(np.int64)

    def host_names(self) -> list[str]:
        """Return the names of the hosts by their numbers."""
        return [self._hosts[number] for number in range(len(self._hosts))]

    def referrer_ids(self) -> NDArray[np.int64]:
        """Return the page that each URL was found on, int64 (n_urls,); -1 for a seed."""
        return self._referrer.data[: len(self._urls)].copy()

    def host_id(self, number: int) -> int:
        """Return the number of the URL's host."""
        return int(self._host.data[number])

    def host_name(self, number: int) -> str:
        """Return the name of the URL's host."""
        return self._hosts[self.host_id(number)]

    def depth(self, number: int) -> int:
        """Return the clicks from a seed to the URL, on the path it was found by."""
        return int(self._depth.data[number])

    def referrer(self, number: int) -> str | None:
        """Return the page the URL was found on, None for a seed."""
        referrer = self.referrer_id(number)
        return None if referrer is None else self._urls[referrer]

    def referrer_id(self, number: int) -> int | None:
        """Return the number of the page the URL was found on, None for a seed."""
        referrer = int(self._referrer.data[number])
        return None if referrer < 0 else referrer

    def state(self, number: int) -> int:
        """Return the URL's state, one of `focuscrawl.store.schema.STATES`."""
        return int(self._state.data[number])

    def is_own(self, number: int) -> bool:
        """Tell whether the URL is this crawl's to fetch: always, but in rounds."""
        return True

    def set_foreign_score(self, number: int, score: float) -> None:
        """Keep the score of a URL that `is_own` is False for."""
        self._score.data[number] = score

    def queueable(
        self, numbers: NDArray[np.int64], scores: NDArray[np.float64]
    ) -> Iterator[tuple[int, float]]:
        """Iterate over the URLs that may still be queued, and their new scores."""
        state = self._state.data[numbers]
        open_ = (state != FETCHED) & (state != EXCLUDED)
        return zip(numbers[open_].tolist(), scores[open_].tolist(), strict=True)

    def score(self, number: int) -> float | None:
        """Return the URL's score, None for a seed and for a URL never scored."""
        score = float(self._score.data[number])
        return None if math.isnan(score) else score

    def set_state(self, number: int, state: int, score: float | None) -> None:
        """Set state and score of a URL."""
        self._state.data[number] = state
        self._score.data[number] = np.nan if score is None else score
        self._changed.add(number)

    def copy_scores(self, frontier: Frontier) -> None:
        """Set the scores that URLs wait with, which are the frontier's while a crawl runs."""
        for number in frontier.queued().tolist():
            if self.state(number) != QUEUED:
                continue  # a page that is to be fetched once more
            score = frontier.score(number)
            self.set_state(number, QUEUED, None if score == math.inf else score)

    def flush(self, record: VisitRecord) -> None:
        """Move all changes since the last call into `record`."""
        new_hosts = range(self._stored_hosts, len(self._hosts))
        record.hosts.extend((number, self._hosts[number]) for number in new_hosts)
        new = np.arange(self._stored_urls, len(self._urls))
        numbers = new.tolist()
        columns = zip(
            numbers,
            [self._urls[number] for number in numbers],
            self._host.data[new].tolist(),
            self._depth.data[new].tolist(),
            [None if each < 0 else each for each in self._referrer.data[new].tolist()],
            [None if math.isnan(each) else each for each in self._score.data[new].tolist()],
            self._state.data[new].tolist(),
            strict=True,
        )
        record.urls.extend(map(NewUrl._make, columns))
        record.changes.extend(
            (number, self.score(number), self.state(number))
            for number in sorted(self._changed)
            if number < self._stored_urls
        )
        self._changed.clear()
        self._stored_urls, self._stored_hosts = len(self._urls), len(self._hosts)
