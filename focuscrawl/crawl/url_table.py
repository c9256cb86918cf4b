"""Table of all URLs that a crawl knows, and the pattern of a URL."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.foundation.urls import host
from focuscrawl.frontier import NameTable
from focuscrawl.store import NewUrl
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED

if TYPE_CHECKING:
    from focuscrawl.frontier import Frontier
    from focuscrawl.store import VisitRecord


_VARIABLE = re.compile(r"(?=[a-f]*[0-9])[0-9a-f]{8,}|[0-9]+")  # numbers, dates, session ids
_MAX_SEGMENTS = 12  # segments of a path
_MAX_ARGUMENTS = 6  # arguments of a query
_REPEATED = re.compile(r"((?:/[^/]+){1,4})\1{2}(?=/|$)")  # three times in a row


@lru_cache(maxsize=1024)  # a referrer is looked up with each of its links
def url_pattern(url: str) -> str:
    """Return the pattern of a normalised URL: its host, its folder and the names in its query.

    Numbers in the URL are replaced with ``#`` and the last path segment with ``*``; the values of
    query arguments are dropped. All URLs of a host that repeat a path segment have the same
    pattern. All URLs of a host that have a very deep path have another common pattern.

    >>> url_pattern("https://a.example/wiki/2019/Start?version=3&action=diff")
    'a.example/wiki/#/*?action&version'
    """
    address, _, query = url.partition("?")
    host, _, path = address.partition("://")[2].partition("/")
    path = f"/{path}".partition(";")[0]
    if _REPEATED.search(path):
        return f"{host}/… (segments that repeat)"
    segments = path.rstrip("/").split("/")[1:]
    if len(segments) > _MAX_SEGMENTS:
        return f"{host}/… (more than {_MAX_SEGMENTS} levels)"
    folder = "/".join([host, *(_VARIABLE.sub("#", each) for each in segments[:-1]), "*"])
    if not query:
        return folder
    names = sorted({_VARIABLE.sub("#", part.partition("=")[0]) for part in query.split("&")})
    shown = (
        "&".join(names)
        if len(names) <= _MAX_ARGUMENTS
        else f"… (more than {_MAX_ARGUMENTS} arguments)"
    )
    return f"{folder}?{shown}"


class UrlTable:
    """Table of URLs with id, host, depth, referrer, state and score; the ids are 0, 1, 2, ...

    The method `flush` moves all changes of the table into the record of a transaction. Scores of
    queued URLs are in the frontier while the crawl runs; `copy_scores` copies them into the table.
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

    def __getitem__(self, url_id: int) -> str:
        return self._urls[url_id]

    def get(self, url: str) -> int | None:
        """Return the id of a URL, or None if the URL is unknown."""
        return self._urls.get(url)

    def add(self, url: str, depth: int, referrer: int | None) -> int:
        """Return the id of a URL; add an unknown URL with its depth and referrer to the table."""
        url_id, new = self._urls.add(url)
        if new:
            self._grow(url_id + 1)
            self._host.data[url_id] = self._hosts.add(host(url))[0]
            self._depth.data[url_id] = depth
            if referrer is not None:
                self._referrer.data[url_id] = referrer
        return url_id

    def load_hosts(self, names: Iterable[str]) -> None:
        """Load host names from the store (database), in the order of their ids."""
        for name in names:
            self._hosts.add(name)
        self._stored_hosts = len(self._hosts)

    def load(self, rows: Sequence[NewUrl]) -> None:
        """Load URLs from the store (database) in the order of their ids, after `load_hosts`.

        Raises
        ------
        ValueError
            The store is damaged: the host of a URL is missing.
        """
        start, end = len(self._urls), len(self._urls) + len(rows)
        _, urls, hosts, depths, referrers, scores, states = zip(*rows, strict=True)
        if not 0 <= min(hosts) <= max(hosts) < len(self._hosts):
            msg = "the host of a URL is missing"
            raise ValueError(msg)
        for url in urls:
            self._urls.add(url)
        self._grow(end)
        self._host.data[start:end] = hosts
        self._depth.data[start:end] = depths
        self._referrer.data[start:end] = [-1 if each is None else each for each in referrers]
        self._score.data[start:end] = np.array(scores, dtype=np.float64)  # None becomes nan
        self._state.data[start:end] = states
        self._stored_urls = end

    def _grow(self, length: int) -> None:
        """Grow the columns to ``length`` or more, because each growth copies all columns."""
        if length > len(self._state):
            for column in (self._host, self._depth, self._referrer, self._score, self._state):
                column.grow(length + length // 8 + 64)

    def queued(self) -> tuple[Ints, Ints, Floats]:
        """Return ids, host ids and scores of all queued URLs; the score of start pages is inf."""
        urls = np.flatnonzero(self._state.data[: len(self._urls)] == QUEUED)
        scores = self._score.data[urls]
        scores[np.isnan(scores)] = np.inf
        return urls, self._host.data[urls].astype(np.int64), scores

    def host_ids(self) -> Ints:
        """Return the ids of the hosts of URLs."""
        return self._host.data[: len(self._urls)].astype(np.int64)

    def host_names(self, first: int = 0) -> list[str]:
        """Return the host names in the order of their ids, from the id `first` on."""
        return [self._hosts[host_id] for host_id in range(first, len(self._hosts))]

    def referrer_ids(self) -> Ints:
        """Return for each URL the id of the page on which it was found; -1 for a start page."""
        return self._referrer.data[: len(self._urls)].copy()

    def host_id(self, url_id: int) -> int:
        """Return the id of a URL's host."""
        return int(self._host.data[url_id])

    def host_name(self, url_id: int) -> str:
        """Return the name of a URL's host."""
        return self._hosts[self.host_id(url_id)]

    def depth(self, url_id: int) -> int:
        """Return the number of links on the path from a start page by which a URL was found."""
        return int(self._depth.data[url_id])

    def referrer(self, url_id: int) -> str | None:
        """Return the page on which a URL was found, or None for a start page."""
        referrer = self.referrer_id(url_id)
        return None if referrer is None else self._urls[referrer]

    def referrer_id(self, url_id: int) -> int | None:
        """Return the id of the page on which a URL was found, or None for a start page."""
        referrer = int(self._referrer.data[url_id])
        return None if referrer < 0 else referrer

    def state(self, url_id: int) -> int:
        """Return the state of a URL, one of `focuscrawl.store.schema.STATES`."""
        return int(self._state.data[url_id])

    def is_own(self, url_id: int) -> bool:
        """Tell whether this process may fetch a URL; False only in a crawl in rounds."""
        return True

    def set_foreign_score(self, url_id: int, score: float) -> None:
        """Set the score of a URL that this crawl may not fetch (see `is_own`)."""
        self._score.data[url_id] = score

    def queueable(self, url_ids: Ints, scores: Floats) -> Iterator[tuple[int, float]]:
        """Iterate over (id, new score) of those URLs that were neither fetched nor excluded."""
        state = self._state.data[url_ids]
        can_queue = (state != FETCHED) & (state != EXCLUDED)
        return zip(url_ids[can_queue].tolist(), scores[can_queue].tolist(), strict=True)

    def score(self, url_id: int) -> float | None:
        """Return the score of a URL, or None for a start page or a URL without a score."""
        score = float(self._score.data[url_id])
        return None if math.isnan(score) else score

    def set_state(self, url_id: int, state: int, score: float | None) -> None:
        """Set the state and the score of a URL."""
        self._state.data[url_id] = state
        self._score.data[url_id] = np.nan if score is None else score
        self._changed.add(url_id)

    def copy_scores(self, frontier: Frontier) -> None:
        """Copy the scores of queued URLs from the frontier into the table."""
        for url_id in frontier.queued().tolist():
            if self.state(url_id) != QUEUED:
                continue  # a hub that is queued for another fetch
            score = frontier.score(url_id)
            self.set_state(url_id, QUEUED, None if score == math.inf else score)

    def flush(self, record: VisitRecord) -> None:
        """Move all changes of the table since the last call into a record."""
        new_hosts = range(self._stored_hosts, len(self._hosts))
        record.hosts.extend((host_id, self._hosts[host_id]) for host_id in new_hosts)
        new = np.arange(self._stored_urls, len(self._urls))
        url_ids = new.tolist()
        columns = zip(
            url_ids,
            [self._urls[url_id] for url_id in url_ids],
            self._host.data[new].tolist(),
            self._depth.data[new].tolist(),
            [None if each < 0 else each for each in self._referrer.data[new].tolist()],
            [None if math.isnan(each) else each for each in self._score.data[new].tolist()],
            self._state.data[new].tolist(),
            strict=True,
        )
        record.urls.extend(map(NewUrl._make, columns))
        record.changes.extend(
            (url_id, self.score(url_id), self.state(url_id))
            for url_id in sorted(self._changed)
            if url_id < self._stored_urls
        )
        self._changed.clear()
        self._stored_urls, self._stored_hosts = len(self._urls), len(self._hosts)
