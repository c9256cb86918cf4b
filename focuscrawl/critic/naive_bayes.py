"""Multinomial naive Bayes, flat over the leaf classes [A02 section 2.3, METHODS 2]."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from focuscrawl.critic.bag_of_words import Bag, BagRows, Vocabulary
from focuscrawl.critic.log_probabilities import log_normalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.calibration import Calibration
    from focuscrawl.critic.counts import ClassCounts


def log_theta(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log theta(c,t) = log((1 + n(c,t)) / (|T| + n(c))) [A02 equation 1].

    Parameters
    ----------
    counts : (n_words, n_classes), n(c,t)

    Returns
    -------
    float64 (n_words, n_classes) in C order, so that a word's row is one stretch of memory.
    """
    total = len(counts) + counts.sum(axis=0)
    return np.ascontiguousarray(np.log((1.0 + counts) / np.maximum(total, 1)))


def log_prior(pages: NDArray[np.int64], *, uniform: bool) -> NDArray[np.float64]:
    """Return log Pr(c): the share of training pages [A02], or the same for all classes."""
    weight = np.ones(len(pages)) if uniform else pages.astype(np.float64)
    prior: NDArray[np.float64] = np.log(weight / weight.sum())
    return prior


class NaiveBayes:
    """Flat naive Bayes: Pr(c|u) proportional to Pr(c) prod_t theta(c,t)^n(u,t) [A02 equation 2].

    Parameters
    ----------
    counts : what was learned
    uniform_prior : give every class the same Pr(c), for topics whose share among the examples
        says nothing of their share of the web

    Attributes
    ----------
    classes : the leaf classes, the columns of every posterior
    """

    kind: ClassVar[str] = "flat"

    def __init__(self, counts: ClassCounts, *, uniform_prior: bool = False) -> None:
        self.counts = counts
        self.classes = counts.classes
        self.uniform_prior = uniform_prior
        self._vocabulary = Vocabulary(counts.words)
        self._weights = log_theta(counts.counts)
        self._prior = log_prior(counts.pages, uniform=uniform_prior)

    def log_posteriors(
        self, bags: Sequence[Bag], calibration: Calibration | None = None
    ) -> NDArray[np.float64]:
        """Return log Pr(c|u), float64 (n_bags, n_classes), each row a distribution."""
        rows = self._vocabulary.read(bags)
        posteriors = self.log_posteriors_of_rows(rows)
        return posteriors if calibration is None else calibration(posteriors, rows.lengths())

    def log_posteriors_of_rows(self, rows: BagRows) -> NDArray[np.float64]:
        """Return log Pr(c|u) of pages already numbered by this model's own words."""
        return log_normalised(rows.dot(self._weights) + self._prior)
