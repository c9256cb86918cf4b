"""Arrays: short names of their types, sums by groups, arrays that grow, arrays as bytes."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import ArrayLike, DTypeLike


#: float64, int64 and bool of any shape; docstrings tell the shape
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


_MOST_BYTES = 1 << 30  # unpacked arrays; a larger model is a zip bomb or a mistake
_GREATEST = 1e9  # what a model has learned is far from it; sums and squares of more may overflow


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


def pack_arrays(arrays: Mapping[str, NDArray[Any]], *, compressed: bool = True) -> bytes:
    """Return an ``.npz`` file; the same arrays make the same bytes."""
    packed = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(packed, allow_pickle=False, **arrays)
    return packed.getvalue()


def unpack_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Read an ``.npz`` file; ValueError and the errors of zip files if it is not a sound one."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(member.file_size for member in archive.infolist()) > _MOST_BYTES:
            raise ValueError("the arrays are too large")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def unpack_numbers(content: bytes) -> dict[str, NDArray[Any]]:
    """As `unpack_arrays`, of numbers that can be calculated with: finite ones, none beyond 1e9.

    Whole numbers may be any.
    """
    arrays = unpack_arrays(content)
    for name, array in arrays.items():
        kind = array.dtype.kind
        if kind not in "biuf" or (kind == "f" and not (np.abs(array) <= _GREATEST).all()):
            msg = f"array {name} is {array.dtype} {array.shape}, or has a number that is none"
            raise ValueError(msg)
    return arrays


def expect(
    arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...], kinds: str
) -> NDArray[Any]:
    """Return an array of finite numbers of this `shape` and these dtype `kinds`, or ValueError."""
    array = arrays[name]
    if array.shape != shape or array.dtype.kind not in kinds or not np.isfinite(array).all():
        raise ValueError(f"array {name} is {array.dtype} {array.shape}")
    return array


def array_of_lines(lines: Iterable[str]) -> NDArray[np.uint8]:
    """Return texts without line breaks as an array of UTF-8."""
    return np.frombuffer("\n".join(lines).encode(), np.uint8)


def lines_of(arrays: Mapping[str, NDArray[Any]], name: str) -> tuple[str, ...]:
    """Return the texts in an array that `array_of_lines` made; () if it is empty.

    ValueError if it is no such array.
    """
    array = expect(arrays, name, arrays[name].shape, "u").astype(np.uint8)
    text = array.tobytes().decode()
    return tuple(text.split("\n")) if text else ()
