"""URLs that have the same numbers for all workers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.foundation.arrays import GrowingArray
from focuscrawl.foundation.urls import identity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from focuscrawl.store import VisitRecord


class SharedUrlTable(UrlTable):
    """A `UrlTable` that knows the numbers in the store, and the shards.

    Parameters
    ----------
    shards : how many there are; a host belongs to the one numbered by its identity, modulo shards

    Attributes
    ----------
    ids : int64 by URL, numbers in the store
    host_ids, shard_of_host : int64 by host
    """

    def __init__(self, shards: int) -> None:
        super().__init__()
        self.shards = shards
        self.held: frozenset[int] = frozenset()
        self._first: list[int] = []  # URLs of other workers that come next
        self.ids = GrowingArray(np.int64)
        self.host_ids = GrowingArray(np.int64)
        self.shard_of_host = GrowingArray(np.int64)
        self._numbers: dict[int, int] = {}

    def add(self, url: str, depth: int, referrer: int | None) -> int:
        """Return the number of `url`; see `UrlTable.add`."""
        known = len(self)
        number = super().add(url, depth, referrer)
        if number == known:
            host = self.host(number)
            if host == len(self.host_ids):
                of_host = identity(self.host_name(number))
                self.host_ids.extend([of_host])
                self.shard_of_host.extend([of_host % self.shards])
            of_url = identity(url)
            self.ids.extend([of_url])
            self._numbers[of_url] = number
        return number

    def add_stored(self, url: str, depth: int) -> int:
        """Return the number of a URL that the store has: only changes of it are written."""
        known = len(self)
        number = self.add(url, depth, None)
        if number == known:
            self._from_store.add(number)
        return number

    def number(self, of_url: int) -> int | None:
        """Return the number here of a URL by its number in the store."""
        return self._numbers.get(of_url)

    def numbers(self, of_urls: list[int]) -> NDArray[np.int64]:
        """Return the numbers here of known URLs by those in the store."""
        return np.array([self._numbers[each] for each in of_urls], np.int64)

    def shard(self, number: int) -> int:
        """Return the shard of a URL's host."""
        return int(self.shard_of_host.data[self.host(number)])

    def shards_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the shards of the hosts of URLs, int64 (n,)."""
        shards: NDArray[np.int64] = self.shard_of_host.data[self._host.data[numbers]]
        return shards

    def undecided(
        self, numbers: NDArray[np.int64], scores: NDArray[np.float64]
    ) -> Iterator[tuple[int, float]]:
        """Iterate over all: the scores of what others hold are remembered."""
        return zip(numbers.tolist(), scores.tolist(), strict=True)

    def holds(self, number: int) -> bool:
        """Tell whether a URL is this worker's to fetch."""
        return self.shard(number) in self.held

    def leave_to_others(self, number: int, score: float) -> None:
        """Keep the score of a URL of another worker; tell that one if it is to come next."""
        if score == math.inf:
            self._first.append(number)
        else:
            super().leave_to_others(number, score)

    def come_next_elsewhere(self, number: int) -> None:
        """Keep that a URL of another worker comes next, which that one knows."""
        super().leave_to_others(number, math.inf)

    def flush(self, record: VisitRecord) -> None:
        """Move all changes into `record`, and what others are to be told; see `UrlTable.flush`."""
        record.first, self._first = self._first, []
        record.held = self.held
        super().flush(record)

    def set_stored(self, number: int, state: int, score: float | None) -> None:
        """Take over what the store says of a URL, which need not be written again."""
        self._state.data[number] = state
        self._score.data[number] = np.nan if score is None else score
