"""The hashing trick, sparse rows of hashed features, and dataclasses of arrays packed as bytes.

For the links of a single page, `scipy.sparse` takes three times as long as this module, and adds
values in another order. Only the module `focuscrawl.apprentice.learners` uses `scipy.sparse`, to
store all training instances as a single matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from focuscrawl.page.words import tokenize, word_hashes

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Ints


ROWS = "<i4 <i4"  # packed `SparseRows`: the features, and the number of features of each row
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)


class SparseRows(NamedTuple):
    """n rows of hashed features in the CSR layout.

    Attributes
    ----------
    indices : int32 (nnz,), features, row after row
    indptr : int64 (n + 1,), row i has the features ``indices[indptr[i]:indptr[i + 1]]``
    values : float32 (nnz,) or None, value of each feature; None if all values are 1
    """

    indices: NDArray[np.int32]
    indptr: Ints
    values: NDArray[np.float32] | None = None

    @classmethod
    def empty(cls, n: int) -> Self:
        """Return n empty rows."""
        return cls(np.zeros(0, np.int32), np.zeros(n + 1, np.int64))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def lengths(self) -> Ints:
        """Number of features of each row, int64 (n,)."""
        return self.indptr[1:] - self.indptr[:-1]

    def take(self, rows: NDArray[np.integer] | range) -> SparseRows:
        """Return the rows at the positions `rows`; the result is a view if `rows` is a range."""
        if isinstance(rows, range):
            return self.row_slice(rows.start, rows.stop)
        starts = self.indptr[rows]
        lengths = self.indptr[rows + 1] - starts
        at, indptr = _spread(starts, lengths)
        values = None if self.values is None else self.values.take(at)
        return SparseRows(self.indices.take(at), indptr, values)

    def row_slice(self, first: int, end: int | None = None) -> SparseRows:
        """Return a view of the rows from `first` up to `end` (default: the last row)."""
        indptr = self.indptr[first : None if end is None else end + 1]
        values = None if self.values is None else self.values[indptr[0] : indptr[-1]]
        return SparseRows(self.indices[indptr[0] : indptr[-1]], indptr - indptr[0], values)


def hstack(*parts: SparseRows) -> tuple[SparseRows, Ints]:
    """Join `SparseRows` side by side: row i of the result has the features of row i of each part.

    Parameters
    ----------
    *parts : parts with the same number of rows

    Returns
    -------
    rows : the joined rows
    order : int64 (nnz,), position in `rows` of each feature of the concatenated parts
    """
    lengths = np.array([rows.lengths for rows in parts])
    indptr = row_pointers(lengths.sum(axis=0))
    starts = indptr[:-1] + lengths.cumsum(axis=0) - lengths
    order = multi_arange(starts.ravel(), lengths.ravel())
    indices = np.empty(indptr[-1], np.int32)
    indices[order] = np.concatenate([rows.indices for rows in parts])
    return SparseRows(indices, indptr), order


def row_pointers(lengths: NDArray[np.integer]) -> Ints:
    """Return the CSR row pointers for n rows with these `lengths`, int64 (n + 1,)."""
    indptr = np.zeros(len(lengths) + 1, np.int64)
    lengths.cumsum(out=indptr[1:])
    return indptr


def multi_arange(starts: NDArray[np.integer], lengths: NDArray[np.integer]) -> Ints:
    """Concatenate the integer ranges that start at `starts` and have the given `lengths`."""
    return _spread(starts, lengths)[0]


def _spread(starts: NDArray[np.integer], lengths: NDArray[np.integer]) -> tuple[Ints, Ints]:
    indptr = row_pointers(lengths)
    at = np.arange(indptr[-1])
    at += (starts - indptr[:-1]).repeat(lengths)
    return at, indptr


@cache
def _dtype(name: str) -> np.dtype[Any]:
    """Return a type by its name, from a cache.

    NumPy reads a name with a shape with Python's parser. That of CPython 3.11 sometimes fails in
    several threads: SystemError, recursion depth mismatch.
    """
    return np.dtype(name)


@cache
def _layout(types: tuple[str, ...]) -> list[tuple[np.dtype[Any], tuple[int, ...]]]:
    """Return the element type and the row shape of each array of a record."""
    names = [name for each in types for name in each.split()]
    return [(_dtype(name).base, _dtype(name).shape) for name in names]


class PackedRecord:
    """Base class of dataclasses of arrays that are stored as bytes.

    Attributes
    ----------
    TYPES : little-endian type of each array field, or `ROWS`, in the order of the fields
    """

    __slots__ = ()
    TYPES: ClassVar[Mapping[str, str]]

    def to_bytes(self) -> bytes:
        """Return the arrays as bytes: the sizes of all arrays, then the arrays."""
        arrays = self._arrays()
        sizes = np.array([array.size for array in arrays], "<i4")
        return b"".join(part.tobytes() for part in (sizes, *arrays))

    def _arrays(self) -> list[NDArray[np.generic]]:
        """Return the arrays that are packed, in the order of `TYPES`."""
        arrays = []
        for name, types in self.TYPES.items():
            value = getattr(self, name)
            parts = (value.indices, value.lengths) if types == ROWS else (value,)
            for part, dtype in zip(parts, types.split(), strict=True):
                arrays.append(part.astype(_dtype(dtype).base, copy=False))
        return arrays

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the instance that `to_bytes` packed."""
        return cls(**cls._unpack([data])[0])

    @classmethod
    def _unpack(cls, records: Sequence[bytes]) -> tuple[dict[str, Any], Ints]:
        """Unpack several records.

        Returns
        -------
        fields : the arrays of all records, concatenated, by the name of their field
        sizes : int64 (n_records, n_arrays), number of elements of each array
        """
        layout = _layout(tuple(cls.TYPES.values()))
        start = 4 * len(layout)
        heads = b"".join([record[:start].ljust(start, b"\xff") for record in records])
        sizes = np.frombuffer(heads, "<i4").reshape(len(records), -1).astype(np.int64)
        ends = start + (sizes * [base.itemsize for base, _ in layout]).cumsum(axis=1)
        if sizes.min() < 0 or ends[:, -1].tolist() != [*map(len, records)]:
            raise ValueError("the sizes of the arrays do not match the packed data")
        arrays = list[NDArray[Any]]()
        starts = [start] * len(records)
        for (base, shape), column in zip(layout, ends.T.tolist(), strict=True):
            parts = [record[a:b] for record, a, b in zip(records, starts, column, strict=True)]
            array = np.frombuffer(b"".join(parts), base)
            arrays.append(array.reshape(-1, *shape) if shape else array)
            starts = column
        unpacked = iter(arrays)
        fields = {
            name: SparseRows(next(unpacked), row_pointers(next(unpacked)))
            if types == ROWS
            else next(unpacked)
            for name, types in cls.TYPES.items()
        }
        return fields, sizes


def word_features(texts: list[str], salt: int, bits: int) -> SparseRows:
    """Return one row of features per text: one feature for each occurrence of a word."""
    words, owner = tokenize(texts)
    lengths = np.bincount(owner, minlength=len(texts))
    return SparseRows(hash_features(word_hashes(words), salt, bits), row_pointers(lengths))


def hash_features(
    words: NDArray[np.uint64], salt: int | NDArray[np.uint64], bits: int
) -> NDArray[np.int32]:
    """Hash each pair of a word and a salt to one of 2^`bits` features.

    Parameters
    ----------
    words : uint64 (n,), hashes of words (`word_hashes`)
    salt : number of the kind of feature, below 2^31
    bits : at most 31
    """
    mixed = (words << np.uint64(31)) ^ np.asarray(salt, np.uint64)
    mixed *= _MIX_1
    mixed ^= mixed >> _SHIFT
    mixed *= _MIX_2
    return (mixed >> np.uint64(64 - bits)).astype(np.int32)
