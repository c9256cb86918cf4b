"""Pages as vectors: TF-IDF of their words and, where there are embeddings, what these mean."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from focuscrawl.critic.bag_of_words import BagRows, Vocabulary
from focuscrawl.critic.english import share_of_pages
from focuscrawl.critic.word_vectors import word_vectors

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag

#: the document frequency of a word is counted as if so many English pages had been read, too
_ENGLISH = 100.0
_RARE = 2  # words on fewer pages are left out
_FEW = 100  # pages; of fewer, every word is kept


class PageRows(NamedTuple):
    """Pages as vectors, in two parts.

    Attributes
    ----------
    words : TF-IDF, each row of unit length (or 0): (1 + log n(u,t)) idf(t)
    meaning : float32 (n_rows, dimensions), mean embedding of all the words of a page less the
        centre, each row of unit length (or 0); 0 columns without embeddings
    """

    words: BagRows
    meaning: NDArray[np.float32]


class PageVectors:
    """Makes vectors of bags of words.

    Parameters
    ----------
    words : the vocabulary, distinct
    idf : float32 (n_words,), inverse document frequencies
    centre : float32 (dimensions,), mean embedding of pages; None for vectors without embeddings
    """

    def __init__(
        self,
        words: Sequence[str],
        idf: NDArray[np.float32],
        centre: NDArray[np.float32] | None,
    ) -> None:
        self.words = tuple(words)
        self.idf = idf
        self.centre = centre
        self._vocabulary = Vocabulary(self.words)
        self._vectors = None if centre is None else word_vectors()

    @classmethod
    def learn(cls, bags: Sequence[Bag], kept: Collection[str] = (), *, embeddings: bool) -> Self:
        """Learn document frequencies and the centre of meaning.

        Parameters
        ----------
        bags : pages, a sample of what will be read
        kept : words that are kept, however rare
        embeddings : whether to use them; they must be installed
        """
        pages_with = Counter(chain.from_iterable(bags))
        least = _RARE if len(bags) >= _FEW else 1
        common = {word for word, pages in pages_with.items() if pages >= least}
        words = sorted(common.union(kept))
        df = np.array([pages_with[word] for word in words]) + _ENGLISH * share_of_pages(words)
        idf = np.log((1.0 + len(bags) + _ENGLISH) / (1.0 + df)) + 1.0
        found = cls(words, idf.astype(np.float32), None)
        if embeddings:
            found._vectors = word_vectors()
            found.centre = found._mean(bags).mean(axis=0)
        return found

    @property
    def dimensions(self) -> int:
        """Columns of `PageRows.meaning`."""
        return 0 if self._vectors is None else self._vectors.dimensions

    def read(self, bags: Sequence[Bag]) -> PageRows:
        """Return the vectors of n pages."""
        rows = self._vocabulary.read(bags)
        data = (1.0 + np.log(rows.counts)) * self.idf[rows.ids]
        squares = np.concatenate(([0.0], np.cumsum(data * data)))
        length = np.sqrt(squares[rows.starts[1:]] - squares[rows.starts[:-1]])
        data /= np.repeat(np.maximum(length, 1e-12), np.diff(rows.starts))
        return PageRows(BagRows(rows.ids, data, rows.starts), self._meaning(bags))

    def _meaning(self, bags: Sequence[Bag]) -> NDArray[np.float32]:
        if self.centre is None:
            return np.zeros((len(bags), 0), np.float32)
        mean = self._mean(bags)
        mean[[bool(bag) for bag in bags]] -= self.centre  # a page of no words means nothing
        norm = np.linalg.norm(mean, axis=1, keepdims=True)
        unit: NDArray[np.float32] = mean / np.maximum(norm, 1e-12)
        return unit

    def _mean(self, bags: Sequence[Bag]) -> NDArray[np.float32]:
        assert self._vectors is not None
        mean = np.zeros((len(bags), self._vectors.dimensions), np.float32)
        for row, bag in enumerate(bags):
            if bag:
                counts = np.fromiter(bag.values(), np.float32, len(bag))
                mean[row] = counts @ self._vectors.of(list(bag)) / counts.sum()
        return mean
