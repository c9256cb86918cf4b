"""Naive Bayes over several classes of hashed words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.learners.matrix import row_sums

if TYPE_CHECKING:
    from focuscrawl.apprentice.sparse_rows import SparseRows
    from focuscrawl.foundation.arrays import Floats, Ints

BITS = 17  # of the feature space
_SLICE = 50_000  # texts read in one go, so that a large frontier needs little memory


class WordClasses:
    """Multinomial naive Bayes, Laplace-smoothed (METHODS 2), over rows of hashed words.

    Words repeat each other, and a text of some hundred makes every posterior 0 or 1: nothing
    would be left to order links by. So a longer text counts as one of `length` words.

    Parameters
    ----------
    rows : n texts to learn from
    labels : int64 (n,), their classes
    n_classes : how many classes there are; one without texts gets no text
    length : words that a text counts for at most
    weight : float64 (n,), what each text counts; 1 by default

    Notes
    -----
    What was never seen in training says nothing.
    """

    def __init__(
        self,
        rows: SparseRows,
        labels: Ints,
        n_classes: int,
        *,
        length: float,
        weight: Floats | None = None,
    ) -> None:
        each = np.ones(len(labels)) if weight is None else weight
        self._length = length
        space = 1 << BITS
        cell = np.repeat(labels, rows.lengths) * space + rows.indices
        counts = np.bincount(cell, np.repeat(each, rows.lengths), n_classes * space)
        counts = counts.reshape(n_classes, space)
        seen = np.flatnonzero(counts.any(axis=0))
        total = counts.sum(axis=1, keepdims=True) + len(seen)
        self._log = np.zeros((n_classes, space), np.float32)
        self._log[:, seen] = np.log1p(counts[:, seen]) - np.log(total)
        self._seen = np.zeros(space, np.float32)
        self._seen[seen] = 1.0
        texts = np.bincount(labels, each, n_classes)
        with np.errstate(divide="ignore"):
            self._prior = np.log(texts / max(texts.sum(), 1e-300))

    def log_likelihood(self, rows: SparseRows) -> Floats:
        """Return the log-likelihood of n texts in each class, without priors: (n, n_classes)."""
        found = np.empty((len(rows), len(self._log)))
        for start in range(0, len(rows), _SLICE):
            part = rows.take(np.arange(start, min(start + _SLICE, len(rows))))
            read = row_sums(self._seen[part.indices], part.indptr)
            scale = np.minimum(1.0, self._length / np.maximum(read, 1.0))
            for number, log in enumerate(self._log):
                sums = row_sums(log[part.indices], part.indptr)
                found[start : start + _SLICE, number] = sums * scale
        return found

    def posterior(self, likelihood: Floats) -> Floats:
        """Return Pr(class|text) by the log-likelihoods of n texts (n, n_classes)."""
        return shares(likelihood + self._prior)


def shares(log: Floats) -> Floats:
    """Return exp(log) (n, k), each row scaled to the sum 1."""
    chance = np.exp(log - log.max(axis=1, keepdims=True))
    found: Floats = chance / chance.sum(axis=1, keepdims=True)
    return found
