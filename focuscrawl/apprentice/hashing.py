"""The hashing trick; sparse rows of hashed features; records of arrays as bytes.

`scipy.sparse` takes three times as long for the links of one page, and adds up in another order.
It is used in `focuscrawl.apprentice.learners`, where all instances are one matrix.
"""

from __future__ import annotations

from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from focuscrawl.page.words import hash_words, tokenize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.foundation.arrays import Ints


ROWS = "<i4 <i4"  # of `SparseRows`: the features, and how many each row has
_CACHE_SIZE = 500_000  # words, about 60 MB
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)


class SparseRows(NamedTuple):
    """n rows of features in the CSR layout: a feature has the value 1 if there are no `values`.

    Attributes
    ----------
    indices : int32 (nnz,), feature numbers, row after row
    indptr : int64 (n + 1,), row i holds ``indices[indptr[i]:indptr[i + 1]]``
    values : float32 (nnz,), of each feature; None: all are 1
    """

    indices: NDArray[np.int32]
    indptr: Ints
    values: NDArray[np.float32] | None = None

    @classmethod
    def empty(cls, n: int) -> Self:
        """Return n rows without features."""
        return cls(np.zeros(0, np.int32), np.zeros(n + 1, np.int64))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def lengths(self) -> Ints:
        """Features of each row, int64 (n,)."""
        return self.indptr[1:] - self.indptr[:-1]

    def take(self, rows: NDArray[np.integer] | range) -> SparseRows:
        """Return the rows numbered `rows`, in that order; a view for a range."""
        if isinstance(rows, range):
            return self.row_slice(rows.start, rows.stop)
        starts = self.indptr[rows]
        lengths = self.indptr[rows + 1] - starts
        at, indptr = _spread(starts, lengths)
        values = None if self.values is None else self.values.take(at)
        return SparseRows(self.indices.take(at), indptr, values)

    @classmethod
    def vstack(cls, parts: Sequence[SparseRows]) -> Self:
        """Return the rows of some parts, which have no values, one after another."""
        indices = np.concatenate([rows.indices for rows in parts])
        return cls(indices, row_pointers(np.concatenate([rows.lengths for rows in parts])))

    def row_slice(self, first: int, end: int | None = None) -> SparseRows:
        """Return the rows from `first` up to `end`, by default all that follow; a view."""
        indptr = self.indptr[first : None if end is None else end + 1]
        values = None if self.values is None else self.values[indptr[0] : indptr[-1]]
        return SparseRows(self.indices[indptr[0] : indptr[-1]], indptr - indptr[0], values)


def hstack(*parts: SparseRows) -> tuple[SparseRows, Ints]:
    """Put rows of equal number side by side: row i is all their rows i, one after another.

    Parameters
    ----------
    parts : rows without values

    Returns
    -------
    The rows, and where each feature of the parts, taken one after another, went
    """
    lengths = np.array([rows.lengths for rows in parts])
    indptr = row_pointers(lengths.sum(axis=0))
    begin = indptr[:-1] + lengths.cumsum(axis=0) - lengths
    order = multi_arange(begin.ravel(), lengths.ravel())
    indices = np.empty(indptr[-1], np.int32)
    indices[order] = np.concatenate([rows.indices for rows in parts])
    return SparseRows(indices, indptr), order


def row_pointers(lengths: NDArray[np.integer]) -> Ints:
    """Return where rows of `lengths` (n,) begin, and the end: int64 (n + 1,)."""
    indptr = np.zeros(len(lengths) + 1, np.int64)
    lengths.cumsum(out=indptr[1:])
    return indptr


def multi_arange(starts: NDArray[np.integer], lengths: NDArray[np.integer]) -> Ints:
    """Return ``start, start + 1, ... start + length - 1`` of each pair, one after another."""
    return _spread(starts, lengths)[0]


def _spread(starts: NDArray[np.integer], lengths: NDArray[np.integer]) -> tuple[Ints, Ints]:
    indptr = row_pointers(lengths)
    at = np.arange(indptr[-1])
    at += (starts - indptr[:-1]).repeat(lengths)
    return at, indptr


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
                name: SparseRows(next(left), row_pointers(next(left)))
                if types == ROWS
                else next(left)
                for name, types in cls.TYPES.items()
            }
        )


class WordHashes:
    """Numbers of words, remembered: looking one up again costs a tenth of hashing it.

    Parameters
    ----------
    most : words remembered before all are forgotten
    """

    def __init__(self, most: int = _CACHE_SIZE) -> None:
        self._most = most
        self._known: dict[str, int] = {}

    def __call__(self, words: Sequence[str]) -> NDArray[np.uint64]:
        """Return uint64 (n,), one number below 2^32 a word."""
        known = self._known
        if len(known) > self._most:
            known.clear()
        numbers = np.fromiter(map(known.get, words, repeat(-1)), np.int64, len(words))
        unknown = (numbers < 0).nonzero()[0]
        if len(unknown):
            new = [words[i] for i in unknown.tolist()]
            numbers[unknown] = hashed = hash_words(new)
            known.update(zip(new, hashed.tolist(), strict=True))
        return numbers.view(np.uint64)

    def rows(self, texts: list[str], salt: int, bits: int) -> SparseRows:
        """Return one row a text: the features of its words, as often as it has them."""
        words, owner = tokenize(texts)
        lengths = np.bincount(owner, minlength=len(texts))
        return SparseRows(hash_features(self(words), salt, bits), row_pointers(lengths))

    def words(self) -> dict[int, str]:
        """Return the words that are remembered, by their numbers."""
        return {number: word for word, number in self._known.items()}


def hash_features(
    words: NDArray[np.uint64], salt: int | NDArray[np.uint64], bits: int
) -> NDArray[np.int32]:
    """Spread (word, salt) pairs over 2^`bits` features.

    Parameters
    ----------
    words : uint64 (n,), as `WordHashes` gives them
    salt : of the kind of feature, one number or uint64 (n,), below 2^31
    bits : at most 31

    Returns
    -------
    int32 (n,), in [0, 2^bits)
    """
    mixed = (words << np.uint64(31)) ^ np.asarray(salt, np.uint64)
    mixed *= _MIX_1
    mixed ^= mixed >> _SHIFT
    mixed *= _MIX_2
    return (mixed >> np.uint64(64 - bits)).astype(np.int32)
