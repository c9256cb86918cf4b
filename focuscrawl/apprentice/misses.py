"""How long directories have brought nothing: the best of them is fetched first, and ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Floats

_BITS = 19  # of the table; a clash of two keys blurs both, no more
_MASK = np.uint32((1 << _BITS) - 1)


class Misses:
    """Fetches since the last relevant one, by host and directory.

    The best of a directory is fetched first. When it has come to an end its rate, the mean of all
    fetches there, is still high, and what is left goes on being fetched by it. Misses in a row
    tell: after each fetch their number m is::

        m <- (m + 1) (1 - R)
    """

    def __init__(self) -> None:
        self._in_a_row = np.zeros(1 << _BITS)

    def observe(self, keys: NDArray[np.uint32], relevance: float) -> None:
        """Take in one fetch; `keys` of its host and directories, 0 for none."""
        slots = np.unique(keys[keys > 0] & _MASK)
        self._in_a_row[slots] = (self._in_a_row[slots] + 1.0) * (1.0 - relevance)

    def of(self, keys: NDArray[np.uint32]) -> Floats:
        """Return the misses in a row that count for n URLs, float64 (n,).

        The most of any of a URL's directories; of its host only if it is in none, since that a
        host has brought nothing of late says little of a directory where nobody has been.

        Parameters
        ----------
        keys : uint32 (n, length), host, directory, directory in that, 0 for none
        """
        misses = self._in_a_row[keys & _MASK] * (keys > 0)
        counted: Floats = np.where(keys[:, 1] > 0, misses[:, 1:].max(axis=1), misses[:, 0])
        return counted
