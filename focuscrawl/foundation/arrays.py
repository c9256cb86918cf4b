"""Arrays: short names of their common types, sums by groups, one that grows at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

#: float64, int64 and bool of any shape; docstrings tell the shape
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def sums(groups: NDArray[np.integer], values: NDArray[np.generic], n: int) -> Floats:
    """Add up the values of each group; float64, of length `n`, or more if the numbers ask for it.

    Parameters
    ----------
    groups : (m,), from 0
    values : (m,)
    """
    return np.bincount(groups, values, n).astype(np.float64, copy=False)


class GrowingArray:
    """A one-dimensional array with amortised constant-time growth.

    Parameters
    ----------
    dtype : of the elements
    fill : value of elements that nobody has set

    Attributes
    ----------
    data : the elements, a view of length ``len(self)``; take it anew after growing
    """

    def __init__(self, dtype: DTypeLike, fill: Any = 0) -> None:
        self._fill = fill
        self._buffer: NDArray[Any] = np.full(1024, fill, dtype=dtype)
        self.data = self._buffer[:0]

    def __len__(self) -> int:
        return len(self.data)

    def grow(self, length: int) -> None:
        """Make the array at least `length` long."""
        if length > len(self.data):
            self._make_room(length)
            self.data = self._buffer[:length]

    def extend(self, values: ArrayLike) -> None:
        """Append `values`; another thread sees the array without them, or with all of them."""
        values = np.asarray(values)
        start, end = len(self.data), len(self.data) + len(values)
        self._make_room(end)
        self._buffer[start:end] = values
        self.data = self._buffer[:end]

    def _make_room(self, length: int) -> None:
        if length > len(self._buffer):
            capacity = max(length, len(self._buffer) * 3 // 2)
            larger = np.full(capacity, self._fill, self._buffer.dtype)
            larger[: len(self.data)] = self.data
            self._buffer = larger
