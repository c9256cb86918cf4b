"""Logistic regression on the words of pages and their meaning, the discriminative critic.

Flat over the leaf classes (multinomial), or of two classes. Where naive Bayes asks how often each
class uses a word, it asks which words tell the classes apart; from a few examples on it is much
the better judge (docs/critics.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from focuscrawl.critic.calibration import log_normalised
from focuscrawl.taxonomy import lies_under

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy import sparse

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.calibration import Calibration
    from focuscrawl.critic.naive_bayes import NaiveBayes
    from focuscrawl.critic.page_vectors import PageRows, PageVectors

_C = 10.0  # inverse strength of the L2 penalty


class Linear(NamedTuple):
    """A linear function of page vectors, and what it says.

    Attributes
    ----------
    classes : topic paths, sorted
    weights : float64 (n_words + dimensions, m), words first; m is 1 for two classes, where they
        add up to the log-odds of the second, else the number of classes
    intercept : float64 (m,)
    """

    classes: tuple[str, ...]
    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]

    def log_posteriors(self, pages: sparse.csr_matrix) -> NDArray[np.float64]:
        """Return log Pr(c|u) of n pages, as `as_matrix` has them, float64 (n, n_classes)."""
        return _log_posteriors(pages @ self.weights + self.intercept)

    def scaled(self, factor: float) -> Linear:
        """Return the function with all log-odds times `factor`."""
        return Linear(self.classes, self.weights * factor, self.intercept * factor)


class LogisticModel:
    """Pr(c|u) by a linear function of a page's vector; words of links are read by naive Bayes.

    Parameters
    ----------
    vectors : makes vectors of pages
    linear : the function
    reader : naive Bayes of the same classes, or of some below them, learned from the same pages

    Notes
    -----
    The weight of a word is about pages with hundreds of others; a link has three. Naive Bayes
    learns what each class's pages are made of, and the evidence of its words adds up (METHODS 2):
    it reads the words of links better than what judges pages better (docs/critics.md).
    """

    kind: ClassVar[str] = "discriminative"

    def __init__(self, vectors: PageVectors, linear: Linear, reader: NaiveBayes) -> None:
        if not all(lies_under(path, linear.classes) for path in reader.classes):
            raise ValueError("the reader of words has other classes")
        self.classes = linear.classes
        self.vectors = vectors
        self.linear = linear
        self.reader = reader
        n_words = len(vectors.words)
        self._of_words = np.ascontiguousarray(linear.weights[:n_words])
        self._of_meaning = linear.weights[n_words:].astype(np.float32)

    def log_posteriors(
        self, bags: Sequence[Bag], calibration: Calibration | None = None
    ) -> NDArray[np.float64]:
        """Return log Pr(c|u), float64 (n_bags, n_classes), each row a distribution."""
        rows = self.vectors.read(bags)
        logits = rows.words.dot(self._of_words)
        logits += rows.meaning @ self._of_meaning + self.linear.intercept
        posteriors = _log_posteriors(logits)
        if calibration is None:
            return posteriors
        return calibration(posteriors, np.array([float(sum(bag.values())) for bag in bags]))

    def log_posteriors_of_words(self, bags: Sequence[Bag]) -> NDArray[np.float64]:
        """Return log Pr(c|t) of words of links, each a bag; float64 (n_bags, reader's classes)."""
        return self.reader.log_posteriors(bags)

    def marked_of_reader(self, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which classes of the reader lie in those of the model that are `marked`."""
        topics = [path for path, yes in zip(self.classes, marked.tolist(), strict=True) if yes]
        return np.array([lies_under(path, topics) for path in self.reader.classes], np.bool_)


def _log_posteriors(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    if logits.shape[1] == 1:
        logits = np.hstack([np.zeros_like(logits), logits])
    return log_normalised(logits)


def as_matrix(rows: PageRows, n_words: int) -> sparse.csr_matrix:
    """Return the vectors of pages as one sparse matrix, words first."""
    from scipy import sparse  # noqa: PLC0415 - slow to import, needed in training only

    words = sparse.csr_matrix(
        (rows.words.counts, rows.words.ids, rows.words.starts), (len(rows.words), n_words)
    )
    return sparse.csr_matrix(sparse.hstack([words, sparse.csr_matrix(rows.meaning)]))


def fit_logistic(
    pages: sparse.csr_matrix,
    topics: Sequence[str] | NDArray[np.str_],
    weight: NDArray[np.float64] | None = None,
) -> Linear:
    """Fit a linear function to labelled pages by logistic regression.

    Parameters
    ----------
    pages : (n_pages, n_words + dimensions), as `as_matrix` returns it
    topics : (n_pages,), at least two distinct ones
    weight : (n_pages,), of each page; None for 1
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    fitted = LogisticRegression(C=_C, max_iter=300, tol=1e-3).fit(pages, topics, weight)
    return Linear(tuple(map(str, fitted.classes_)), fitted.coef_.T.copy(), fitted.intercept_)


def fit_scale(log_posteriors: NDArray[np.float64], truth: NDArray[np.integer]) -> float:
    """Return by what log-odds have to be multiplied to be those of held-out pages.

    Parameters
    ----------
    log_posteriors : (n, n_classes), of models that have not seen the page
    truth : (n,), true classes
    """
    from scipy.optimize import minimize_scalar  # noqa: PLC0415

    rows = np.arange(len(truth))

    def loss(log_scale: float) -> float:
        scaled = log_normalised(log_posteriors * np.exp(log_scale))
        return -float(scaled[rows, truth].mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-2.0, 2.0), method="bounded").x))
