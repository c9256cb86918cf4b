"""A numpy array that grows at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray


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
        if length <= len(self.data):
            return
        if length > len(self._buffer):
            larger = np.full(
                max(length, len(self._buffer) * 3 // 2), self._fill, self._buffer.dtype
            )
            larger[: len(self.data)] = self.data
            self._buffer = larger
        self.data = self._buffer[:length]

    def extend(self, values: ArrayLike) -> None:
        """Append `values`."""
        values = np.asarray(values)
        start = len(self.data)
        self.grow(start + len(values))
        self.data[start:] = values
