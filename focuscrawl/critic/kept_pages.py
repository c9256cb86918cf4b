"""The words of the pages that a critic was learned from: it can be learned again without them."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from focuscrawl.critic.bag_of_words import Vocabulary
from focuscrawl.foundation.packed_arrays import array_of_lines, expect, lines_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag

_ARRAYS = ("page_words", "page_ids", "page_counts", "page_starts")


class KeptPages(NamedTuple):
    """Bags of words in three arrays.

    Attributes
    ----------
    words : all that a page has, distinct
    ids : integer (nnz,), words of one page after the other's
    counts : integer (nnz,), how often, from 1
    starts : integer (n_pages + 1,), page i has ``ids[starts[i]:starts[i + 1]]``
    """

    words: tuple[str, ...] = ()
    ids: NDArray[np.integer] = np.zeros(0, np.int32)
    counts: NDArray[np.integer] = np.zeros(0, np.int32)
    starts: NDArray[np.integer] = np.zeros(1, np.int64)

    @classmethod
    def of(cls, bags: Sequence[Bag]) -> Self:
        """Keep the words of pages."""
        words = sorted(set(chain.from_iterable(bags)))
        rows = Vocabulary(words).read(bags)
        ids, counts = rows.ids.astype(np.int32), rows.counts.astype(np.int32)
        return cls(tuple(words), ids, counts, rows.starts.astype(np.int64))

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Take them from the arrays of a model; none if there are none.

        ValueError if they do not fit each other.
        """
        if _ARRAYS[0] not in arrays:
            return cls()
        words = lines_of(arrays, _ARRAYS[0])
        ids, counts, starts = (
            expect(arrays, name, (arrays[name].size,), "i") for name in _ARRAYS[1:]
        )
        whole = (
            len(starts) > 0
            and starts[0] == 0
            and starts[-1] == len(ids) == len(counts)
            and bool((np.diff(starts) >= 0).all())
            and bool(((ids >= 0) & (ids < len(words)) & (counts > 0)).all())
        )
        if not whole:
            raise ValueError("pages that do not fit their words")
        return cls(words, ids, counts, starts)

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to keep: nothing if there is no page."""
        if self.n_pages == 0:
            return {}
        values = (array_of_lines(self.words), self.ids, self.counts, self.starts)
        return dict(zip(_ARRAYS, values, strict=True))

    @property
    def n_pages(self) -> int:
        """How many pages there are."""
        return len(self.starts) - 1

    def bags(self) -> list[Bag]:
        """Return the words of each page."""
        words = [self.words[i] for i in self.ids.tolist()]
        counts = self.counts.tolist()
        return [
            dict(zip(words[start:end], counts[start:end], strict=True))
            for start, end in pairwise(self.starts.tolist())
        ]
