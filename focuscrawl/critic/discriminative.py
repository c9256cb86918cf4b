"""Logistic regression on the words of pages and their meaning, the discriminative critic.

Flat over the leaf classes (multinomial), or of two classes. Where naive Bayes asks how often each
class uses a word, it asks which words tell the classes apart; from a few examples on it is much
the better judge (docs/critics.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from focuscrawl.critic.calibration import log_normalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy import sparse

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.calibration import Calibration
    from focuscrawl.critic.page_vectors import PageRows, PageVectors

_C = 10.0  # inverse strength of the L2 penalty


class LogisticModel:
    """Pr(c|u) by a linear function of a page's vector.

    Parameters
    ----------
    vectors : makes vectors of pages
    classes : topic paths, sorted
    weights : float32 (n_words, m), by word; m is 1 for two classes, whose log-odds of the second
        they add up to, else the number of classes
    of_meaning : float32 (dimensions, m), by dimension of the embeddings
    intercept : float32 (m,)
    """

    kind: ClassVar[str] = "discriminative"

    def __init__(
        self,
        vectors: PageVectors,
        classes: Sequence[str],
        weights: NDArray[np.float32],
        of_meaning: NDArray[np.float32],
        intercept: NDArray[np.float32],
    ) -> None:
        self.classes = tuple(classes)
        self.vectors = vectors
        self.weights = np.ascontiguousarray(weights)
        self.of_meaning = of_meaning
        self.intercept = intercept

    def log_posteriors(
        self, bags: Sequence[Bag], calibration: Calibration | None = None
    ) -> NDArray[np.float64]:
        """Return log Pr(c|u), float64 (n_bags, n_classes), each row a distribution."""
        posteriors = log_normalised(self._logits(self.vectors.read(bags)))
        if calibration is None:
            return posteriors
        return calibration(posteriors, np.array([float(sum(bag.values())) for bag in bags]))

    def scaled(self, factor: float) -> LogisticModel:
        """Return the model with all log-odds times `factor`."""
        return LogisticModel(
            self.vectors,
            self.classes,
            self.weights * np.float32(factor),
            self.of_meaning * np.float32(factor),
            self.intercept * np.float32(factor),
        )

    def _logits(self, rows: PageRows) -> NDArray[np.float64]:
        linear = rows.words.dot(self.weights)
        linear += rows.meaning @ self.of_meaning + self.intercept
        if linear.shape[1] == 1:
            return np.hstack([np.zeros_like(linear), linear])
        return linear


def as_matrix(rows: PageRows, n_words: int) -> sparse.csr_matrix:
    """Return the vectors of pages as one sparse matrix, words first."""
    from scipy import sparse  # noqa: PLC0415 - slow to import, needed in training only

    words = sparse.csr_matrix(
        (rows.words.counts, rows.words.ids, rows.words.starts), (len(rows.words), n_words)
    )
    return sparse.csr_matrix(sparse.hstack([words, sparse.csr_matrix(rows.meaning)]))


def fit_logistic(
    vectors: PageVectors,
    matrix: sparse.csr_matrix,
    topics: Sequence[str] | NDArray[np.str_],
    weight: NDArray[np.float64] | None = None,
) -> LogisticModel:
    """Fit a model to labelled pages.

    Parameters
    ----------
    vectors : has made the vectors
    matrix : (n_pages, n_words + dimensions), as `as_matrix` returns it
    topics : (n_pages,), at least two distinct ones
    weight : (n_pages,), of each page; None for 1
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    fitted = LogisticRegression(C=_C, max_iter=300, tol=1e-3).fit(matrix, topics, weight)
    coefficients = fitted.coef_.T.astype(np.float32)
    n_words = len(vectors.words)
    return LogisticModel(
        vectors,
        tuple(map(str, fitted.classes_)),
        coefficients[:n_words],
        coefficients[n_words:],
        fitted.intercept_.astype(np.float32),
    )


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
