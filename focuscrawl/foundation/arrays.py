"""NumPy helpers: array types, sums by group, growing arrays, arrays stored as bytes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


#: arrays of float64, int64 and bool; docstrings state the shape
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


_MAX_UNPACKED_BYTES = 1 << 30  # a larger model is a zip bomb or a mistake
_MAX_MAGNITUDE = 1e9  # far above any learned weight; sums and squares of larger ones may overflow


def sum_by_group(groups: NDArray[np.integer], values: NDArray[np.generic], n: int) -> Floats:
    """Return the sum of the values of each group.

    Parameters
    ----------
    groups : NDArray[np.integer] of shape (m,)
        Group of each value, from 0.
    values : NDArray of shape (m,)
    n : int
        Smallest length of the result; a group number of `n` or more makes the result longer.
    """
    return np.bincount(groups, values, n).astype(np.float64, copy=False)


class GrowingArray:
    """A one-dimensional array to which values are appended in amortised constant time.

    Parameters
    ----------
    fill : Any
        Value of elements that were not set.

    Attributes
    ----------
    data : NDArray of shape (len(self),)
        View of the elements; growing the array replaces the view.
    """

    def __init__(self, dtype: DTypeLike, fill: Any = 0) -> None:
        self._fill = fill
        self._buffer: NDArray[Any] = np.full(1024, fill, dtype=dtype)
        self.data = self._buffer[:0]

    def __len__(self) -> int:
        return len(self.data)

    def grow(self, length: int) -> None:
        """Make the array at least `length` long, by appending the fill value."""
        if length > len(self.data):
            if length > len(self._buffer):
                self._reserve(length)
            self.data = self._buffer[:length]

    def extend(self, values: Sequence[Any] | NDArray[Any]) -> None:
        """Append `values`; another thread sees either none or all of the new values."""
        start = len(self.data)
        end = start + len(values)
        if end > len(self._buffer):
            self._reserve(end)
        self._buffer[start:end] = values
        self.data = self._buffer[:end]

    def _reserve(self, length: int) -> None:
        capacity = max(length, len(self._buffer) * 3 // 2)
        larger = np.full(capacity, self._fill, self._buffer.dtype)
        larger[: len(self.data)] = self.data
        self._buffer = larger


def pack_arrays(arrays: Mapping[str, NDArray[Any]], *, compressed: bool = True) -> bytes:
    """Return arrays as the bytes of an ``.npz`` file; equal arrays give equal bytes."""
    packed = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(packed, allow_pickle=False, **arrays)
    return packed.getvalue()


def unpack_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Read an ``.npz`` file; raise ValueError or an error of `zipfile` if the file is damaged."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(member.file_size for member in archive.infolist()) > _MAX_UNPACKED_BYTES:
            raise ValueError("the arrays are too large")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def unpack_finite_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Read an ``.npz`` file of numbers; raise ValueError for a NaN or a float beyond 1e9.

    The limit of 1e9 does not apply to integers.
    """
    arrays = unpack_arrays(content)
    for name, array in arrays.items():
        kind = array.dtype.kind
        if kind not in "biuf" or (kind == "f" and not (np.abs(array) <= _MAX_MAGNITUDE).all()):
            msg = (
                f"array {name} is {array.dtype} {array.shape}, or has a NaN or too large a number"
            )
            raise ValueError(msg)
    return arrays


def require_array(
    arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...], kinds: str
) -> NDArray[Any]:
    """Return an array; raise ValueError for a wrong shape or dtype, NaN or an infinite value.

    Parameters
    ----------
    kinds : str
        Codes of NumPy for the accepted kinds of dtype, such as ``"iu"``.
    """
    array = arrays[name]
    if array.shape != shape or array.dtype.kind not in kinds or not np.isfinite(array).all():
        raise ValueError(f"array {name} is {array.dtype} {array.shape}")
    return array


def encode_lines(lines: Iterable[str]) -> NDArray[np.uint8]:
    """Return texts without line breaks as one array of UTF-8 bytes."""
    return np.frombuffer("\n".join(lines).encode(), np.uint8)


def decode_lines(arrays: Mapping[str, NDArray[Any]], name: str) -> tuple[str, ...]:
    """Return the texts that `encode_lines` encoded; raise ValueError for any other array."""
    array = require_array(arrays, name, arrays[name].shape, "u").astype(np.uint8)
    text = array.tobytes().decode()
    return tuple(text.split("\n")) if text else ()
