"""What the directories of a site brought, against what the links into them promised.

The model knows other sites. On this one a directory of pictures may look like one of people, and
the other way round; after a few fetches there it can be told. The rewards of the pages that were
fetched, by their labels, and those that their links had promised are averaged along the same
chain of directories; their ratio is a factor on the scores of what waits there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.relevance_rates import RelevanceRates
from focuscrawl.apprentice.url_features import PREFIXES, table_of_keys
from focuscrawl.foundation.arrays import GrowingArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: fetches that what is known of the larger directory counts for
_WEIGHT = 0.5


class SiteRates:
    """Rewards brought and promised, by directory; URLs are dense numbers."""

    def __init__(self) -> None:
        self._brought = RelevanceRates(_WEIGHT)
        self._promised = RelevanceRates(_WEIGHT)
        self._keys = [GrowingArray(np.uint32) for _ in range(PREFIXES)]

    def make_room(self, length: int) -> None:
        """Make room for so many URLs."""
        for column in self._keys:
            column.grow(length)

    def note(self, urls: NDArray[np.int64], directories: NDArray[np.uint32]) -> None:
        """Take note of where URLs are; `directories` as from `directories_of`."""
        for column, numbers in zip(self._keys, directories.T, strict=True):
            column.data[urls] = numbers

    def observe(self, url: int, promised: float, brought: float) -> None:
        """Take in the reward of a page that was fetched, and what the links to it had promised."""
        keys = self._of(np.array([url]))[0]
        self._promised.observe(keys, promised)
        self._brought.observe(keys, brought)

    def factors(self, urls: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how much more than promised the directory of each URL brings, float64 (n,)."""
        keys = self._of(urls)
        brought = self._brought.rates(keys)
        promised = self._promised.rates(keys)
        factors: NDArray[np.float64] = np.round(brought / promised, 9)
        return factors

    def _of(self, urls: NDArray[np.int64]) -> NDArray[np.uint32]:
        return np.stack([column.data[urls] for column in self._keys], axis=1)


def directories_of(urls: Sequence[str]) -> NDArray[np.uint32]:
    """Return numbers of host and directories of URLs, uint32 (n, `PREFIXES`); 0 after the last."""
    return table_of_keys(urls)[:, :PREFIXES]
