"""Pages as bags of words, numbered by a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: how often each word occurs on a page, title and text [A02 section 2.3]
Bag = Mapping[str, int]


class BagRows(NamedTuple):
    """Bags as the rows of a sparse matrix, in the three arrays of the CSR layout.

    Attributes
    ----------
    ids : integer (nnz,), word numbers, row after row
    counts : float64 (nnz,), n(u,t)
    starts : integer (n_rows + 1,), row i holds ``ids[starts[i]:starts[i + 1]]``
    """

    ids: NDArray[np.integer]
    counts: NDArray[np.float64]
    starts: NDArray[np.integer]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def lengths(self) -> NDArray[np.float64]:
        """Return n(u), the number of known words of each row, float64 (n_rows,)."""
        total = np.concatenate(([0.0], np.cumsum(self.counts)))
        lengths: NDArray[np.float64] = total[self.starts[1:]] - total[self.starts[:-1]]
        return lengths

    def dot(self, weights: NDArray[np.floating]) -> NDArray[np.float64]:
        """Multiply by `weights` (n_words, n_columns) in C order; returns (n_rows, n_columns).

        A page touches a few hundred rows of the weights: gathering them costs less than
        building a scipy matrix of one row.
        """
        if len(self) == 1:
            return (self.counts @ weights.take(self.ids, axis=0))[None]
        words = self.starts[1:] - self.starts[:-1]
        product = np.zeros((len(self), weights.shape[1]))
        single = (words == 1).nonzero()[0]  # most rows, where words are asked for one by one
        at = self.starts[single]
        product[single] = self.counts[at, None] * weights.take(self.ids[at], axis=0)
        for row in (words > 1).nonzero()[0].tolist():
            start, end = self.starts[row], self.starts[row + 1]
            product[row] = self.counts[start:end] @ weights.take(self.ids[start:end], axis=0)
        return product


class Vocabulary:
    """Words and their numbers.

    Parameters
    ----------
    words : distinct words; word i has number i
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self._number = {word: number for number, word in enumerate(self.words)}
        if len(self._number) != len(self.words):
            raise ValueError("a word is listed twice")

    def __len__(self) -> int:
        return len(self.words)

    def read(self, bags: Sequence[Bag]) -> BagRows:
        """Look up the words of `bags`; words the vocabulary does not have are dropped."""
        lengths = [len(bag) for bag in bags]
        n = sum(lengths)
        words = bags[0] if len(bags) == 1 else chain.from_iterable(bags)
        counts = chain.from_iterable(bag.values() for bag in bags)
        ids = np.fromiter(map(self._number.get, words, repeat(-1)), np.intp, n)
        known = ids >= 0
        kept = np.zeros(n + 1, np.intp)
        known.cumsum(out=kept[1:])
        starts = kept[[0, *accumulate(lengths)]]
        return BagRows(ids[known], np.fromiter(counts, np.float64, n)[known], starts)
