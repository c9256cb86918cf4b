"""Learners, records, arrays, options as bytes without pickle, for the store and for files."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from focuscrawl.apprentice.sparse_rows import SparseRows, pointers
from focuscrawl.foundation.packed_arrays import pack_arrays, unpack_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.apprentice.learners.base import Learner


ROWS = "<i4 <i4"  # of `SparseRows`: the features, and how many each row has


@cache
def _dtype(name: str) -> np.dtype[Any]:
    """Return a type by its name.

    NumPy has Python's parser read a name with a shape, and that of CPython 3.11 fails now and
    then when several threads are at it: SystemError, recursion depth mismatch.
    """
    return np.dtype(name)


@cache
def _layout(types: tuple[str, ...]) -> list[tuple[np.dtype[Any], tuple[int, ...]]]:
    """Return, of each array of a record, the type of a number and the shape of a row."""
    names = [name for each in types for name in each.split()]
    return [(_dtype(name).base, _dtype(name).shape) for name in names]


class PackedRecord:
    """A base of dataclasses of arrays that the store keeps.

    Attributes
    ----------
    TYPES : by field, in their order: the little-endian type of an array, or `ROWS`
    """

    __slots__ = ()
    TYPES: ClassVar[Mapping[str, str]]

    def to_bytes(self) -> bytes:
        """Pack the record: the size of each array, then one after another."""
        arrays = []
        for name, types in self.TYPES.items():
            value = getattr(self, name)
            parts = (value.indices, value.lengths) if types == ROWS else (value,)
            for part, dtype in zip(parts, types.split(), strict=True):
                arrays.append(part.astype(_dtype(dtype).base, copy=False))
        sizes = np.array([array.size for array in arrays], "<i4")
        return b"".join(part.tobytes() for part in (sizes, *arrays))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Unpack what `to_bytes` has packed; views."""
        layout = _layout(tuple(cls.TYPES.values()))
        sizes = np.frombuffer(data, "<i4", len(layout)).tolist()
        at = 4 * len(layout)
        nbytes = sum(n * base.itemsize for n, (base, _) in zip(sizes, layout, strict=True))
        if min(sizes) < 0 or at + nbytes != len(data):
            raise ValueError("the arrays are not as long as they are said to be")
        arrays = list[NDArray[Any]]()
        for size, (base, shape) in zip(sizes, layout, strict=True):
            array = np.frombuffer(data, base, size, at)
            arrays.append(array.reshape(-1, *shape) if shape else array)
            at += array.nbytes
        left = iter(arrays)
        return cls(
            **{
                name: SparseRows(next(left), pointers(next(left))) if types == ROWS else next(left)
                for name, types in cls.TYPES.items()
            }
        )


def part_of(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with a `prefix` of two characters, without it."""
    return {name[2:]: arrays[name] for name in arrays if name.startswith(prefix)}


def pack(learner: Learner, **arrays: NDArray[np.generic]) -> bytes:
    """Pack a learner (prefix ``m_``) and arrays, without pickling."""
    model = {f"m_{name}": value for name, value in learner.get_state().items()}
    return pack_arrays(model | arrays, compressed=False)


def join(first: bytes, second: bytes) -> bytes:
    """Put two packs into one; see `parts_of`."""
    return len(first).to_bytes(8, "little") + first + second


def parts_of(joined: bytes) -> tuple[bytes, bytes]:
    """Return the two packs that were joined."""
    end = 8 + int.from_bytes(joined[:8], "little")
    return joined[8:end], joined[end:]


def pack_options(options: Mapping[str, Any]) -> NDArray[np.uint8]:
    """Return options as an array, for `pack`."""
    return np.frombuffer(json.dumps(options).encode(), np.uint8)


def options_in(packed: bytes) -> dict[str, Any]:
    """Return the array ``options`` that was packed."""
    options: dict[str, Any] = json.loads(unpack_arrays(packed)["options"].tobytes())
    return options
