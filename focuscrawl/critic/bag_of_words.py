"""Bags of words, vocabularies, and the word counts of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.page.words import LazyBag, WordColumn
from focuscrawl.taxonomy.topic_tree import ancestors

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy import sparse

    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.page.words import PageWords


#: count of each word of a page, title and text [A02 section 2.3]
Bag = Mapping[str, int]


class BagRows(NamedTuple):
    """The bags of words of n pages, as a sparse matrix in CSR layout.

    Attributes
    ----------
    ids : integer (nnz,), word indices, row after row
    counts : float64 (nnz,), n(u,t)
    starts : integer (n_rows + 1,); row i is ``ids[starts[i]:starts[i + 1]]``
    """

    ids: NDArray[np.integer]
    counts: Floats
    starts: NDArray[np.integer]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def lengths(self) -> Floats:
        """Return the number of known words of each page, float64 (n_rows,)."""
        total = np.concatenate(([0.0], np.cumsum(self.counts)))
        lengths: Floats = total[self.starts[1:]] - total[self.starts[:-1]]
        return lengths

    def dot(self, weights: NDArray[np.floating]) -> Floats:
        """Return the product of the rows and `weights` (n_words, n_columns).

        For a page of a few hundred words, picking the weights of the words is faster than building
        a scipy matrix of one row.
        """
        if len(self) == 1:
            return (self.counts @ weights.take(self.ids, axis=0))[None]
        words = self.starts[1:] - self.starts[:-1]
        product = np.zeros((len(self), weights.shape[1]))
        single = (words == 1).nonzero()[0]  # most rows, when link texts are judged word by word
        at = self.starts[single]
        product[single] = self.counts[at, None] * weights.take(self.ids[at], axis=0)
        for row in (words > 1).nonzero()[0].tolist():
            start, end = self.starts[row], self.starts[row + 1]
            product[row] = self.counts[start:end] @ weights.take(self.ids[start:end], axis=0)
        return product


class Vocabulary:
    """Maps words to indices, in the order of `words`."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self._number = {word: number for number, word in enumerate(self.words)}
        if len(self._number) != len(self.words):
            raise ValueError("the vocabulary has a duplicate word")
        self._column = WordColumn(self._look_up, np.intp)

    def __len__(self) -> int:
        return len(self.words)

    def transform(self, bags: Sequence[Bag]) -> BagRows:
        """Convert bags of words to rows of counts; drop words outside the vocabulary."""
        if len(bags) == 1 and isinstance(bags[0], LazyBag):
            return self._transform_page(bags[0].words)
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

    def _transform_page(self, words: PageWords) -> BagRows:
        ids = words.values(self._column)
        known = ids >= 0
        kept = ids[known]
        return BagRows(kept, words.counts[known].astype(np.float64), np.array([0, len(kept)]))

    def _look_up(self, words: list[str]) -> NDArray[np.intp]:
        return np.fromiter(map(self._number.get, words, repeat(-1)), np.intp, len(words))


#: with fewer training pages, words that occur on a single page are kept
FEW_PAGES = 100


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """The word and page counts from which multinomial naive Bayes is fitted.

    Attributes
    ----------
    classes : topic paths, sorted; no class lies under another
    words : vocabulary T, sorted
    counts : int64 (n_words, n_classes), n(c,t), occurrences of word t in the pages of class c
    pages : int64 (n_classes,), number of training pages of each class
    """

    classes: tuple[str, ...]
    words: tuple[str, ...]
    counts: Ints
    pages: Ints

    def __post_init__(self) -> None:
        if len(set(self.classes)) != len(self.classes) or list(self.classes) != sorted(
            self.classes
        ):
            raise ValueError("classes must be sorted and distinct")
        above = {topic for path in self.classes for topic in ancestors(path)}
        if not above.isdisjoint(self.classes):
            raise ValueError("a class lies under another")
        if self.counts.shape != (len(self.words), len(self.classes)):
            raise ValueError(f"counts have shape {self.counts.shape}")
        if self.pages.shape != (len(self.classes),) or (self.pages < 1).any():
            raise ValueError("every class needs at least one page")
        if (self.counts < 0).any():
            raise ValueError("counts are negative")


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Labelled pages as one sparse matrix of word counts.

    Attributes
    ----------
    classes : topic paths, sorted
    words : all words of the pages, sorted
    matrix : float64 CSR (n_pages, n_words), n(u,t)
    truth : int64 (n_pages,), index of each page's class
    """

    classes: tuple[str, ...]
    words: tuple[str, ...]
    matrix: sparse.csr_matrix
    truth: Ints

    @classmethod
    def from_bags(cls, bags: Sequence[Bag], topics: Sequence[str]) -> TrainingRows:
        """Build the matrix of labelled pages from their bags of words and topics."""
        from scipy import sparse  # noqa: PLC0415 - slow to import, needed in training only
        from sklearn.feature_extraction import DictVectorizer  # noqa: PLC0415

        vectorizer = DictVectorizer()
        # DictVectorizer returns no sparse matrix if all pages are empty
        matrix = sparse.csr_matrix(vectorizer.fit_transform(bags))
        classes, truth = np.unique(np.asarray(topics, dtype=str), return_inverse=True)
        return cls(
            tuple(classes.tolist()),
            tuple(vectorizer.feature_names_),
            matrix,
            truth.astype(np.int64),
        )

    def __len__(self) -> int:
        return len(self.truth)

    def count(
        self,
        chosen: NDArray[np.integer] | None = None,
        *,
        min_df: int | None = None,
        max_df: float = 0.5,
    ) -> ClassCounts:
        """Count the words of the labelled pages in each class.

        Parameters
        ----------
        chosen : indices of pages; None for all
        min_df : drop words on fewer pages; None for 3, or for 1 with fewer than `FEW_PAGES` pages
        max_df : drop words on more than this share of the pages of *every* class, that is function
            words and page furniture. Words that are common in one class only are kept

        Notes
        -----
        The defaults come from five-fold cross-validation on the training pages of the recorded
        webs. Any choice of 2 to 5 and of 0.3 to 0.9 is within 0.7 points of the best.
        """
        from scipy import sparse  # noqa: PLC0415

        matrix = self.matrix if chosen is None else self.matrix[chosen]
        truth = self.truth if chosen is None else self.truth[chosen]
        least = min_df if min_df is not None else (1 if len(truth) < FEW_PAGES else 3)
        present, codes = np.unique(truth, return_inverse=True)
        sizes = np.bincount(codes, minlength=len(present))
        member = sparse.csr_matrix(
            (np.ones(len(codes)), (codes, np.arange(len(codes)))), (len(present), len(codes))
        )
        occurs = matrix.copy()
        occurs.data = np.ones_like(occurs.data)
        pages_with = np.asarray(occurs.sum(axis=0))[0]
        keep = pages_with >= least
        if len(present) > 1:  # words that all pages of a single class have describe the class
            # words that are frequent in every class are frequent overall: count only these
            often = np.flatnonzero(pages_with >= max_df * len(truth))
            of_class = (member @ occurs[:, often]).toarray() / sizes[:, None]
            keep[often[of_class.min(axis=0) > max_df]] = False
        kept = np.flatnonzero(keep)
        counts = (member @ matrix[:, kept]).toarray().T
        return ClassCounts(
            tuple(self.classes[code] for code in present),
            tuple(self.words[number] for number in kept),
            np.ascontiguousarray(counts.astype(np.int64)),
            sizes.astype(np.int64),
        )

    def rows(self, chosen: NDArray[np.integer], words: Sequence[str]) -> BagRows:
        """Return the bags of words of the `chosen` pages, limited to the sorted `words`."""
        columns = np.searchsorted(np.asarray(self.words), np.asarray(words))
        part = self.matrix[chosen][:, columns]
        return BagRows(part.indices, part.data, part.indptr)
