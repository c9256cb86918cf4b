"""Mean relevance of the fetches by path prefix, or by URL pattern, shrunk from set to set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Floats

_BITS = 19  # of the tables; a clash of two keys blurs both, no more
_SLOTS = (1 << _BITS) - 1
_MASK = np.uint32(_SLOTS)
_NO_SLOT = np.uint32(1 << _BITS)  # nothing is ever added up there
PRIOR = 0.05  # mean relevance expected before the first fetch (METHODS 5: p0)


class RelevanceRates:
    """Mean relevance along chains of ever smaller sets, each shrunk to the one before.

    A URL lies on its host, in a directory, in a directory of that; the rate of each is that of
    the larger one, corrected by what was fetched there: m' = (sum R + w m) / (n + w).

    Parameters
    ----------
    weight : w, how many fetches the larger set's rate counts for
    """

    def __init__(self, weight: float = 2.0) -> None:
        self.weight = weight
        # total and count side by side: nearly every look at them is a cache miss
        self._sums = np.zeros(((1 << _BITS) + 1, 2), np.float32)
        self._all = PRIOR * 0.1
        self._n = 0.1

    def get_state(self) -> dict[str, NDArray[np.generic]]:
        """Return all that was observed."""
        used = np.flatnonzero(self._sums[:, 1])
        return {
            "used": used,
            "total": self._sums[used, 0],
            "count": self._sums[used, 1],
            "all": np.array([self._all, self._n]),
        }

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> Self:
        """Take up what `get_state` returned, in place of all that was observed."""
        self._sums[:] = 0.0
        self._sums[state["used"], 0] = state["total"]
        self._sums[state["used"], 1] = state["count"]
        self._all, self._n = (float(x) for x in state["all"])
        return self

    def observe(self, keys: NDArray[np.uint32], relevance: float) -> None:
        """Take in one fetch; `keys` of its chain, 0 for none."""
        for slot in {key & _SLOTS for key in keys.tolist() if key}:
            self._sums[slot, 0] += relevance
            self._sums[slot, 1] += 1.0
        self._all += relevance
        self._n += 1.0

    def rates(self, keys: NDArray[np.uint32]) -> Floats:
        """Return the rates at the ends of n chains, float64 (n,).

        Parameters
        ----------
        keys : uint32 (n, length), from large to small, 0 for none
        """
        inside = keys > 0
        length = np.add.reduce(inside, axis=1)
        deepest = int(length.max(initial=0))
        # where a chain has ended, no fetches in no set leave the rate as it is
        slots = np.where(inside, keys & _MASK, _NO_SLOT).T[:deepest]
        sums = self._sums.take(slots, axis=0)
        rate = np.full(len(keys), self._all / self._n)
        total, count = np.divide(sums.transpose(2, 0, 1), self.weight, dtype=float, order="C")
        count += 1.0
        for part, n in zip(total, count, strict=True):
            rate += part
            rate /= n
        return rate
