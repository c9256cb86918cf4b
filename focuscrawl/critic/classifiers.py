"""Page classifiers: flat and hierarchical naive Bayes, and logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from focuscrawl.critic.bag_of_words import Bag, BagRows, Vocabulary
from focuscrawl.critic.calibration import log_normalised
from focuscrawl.critic.languages import ENGLISH, to_terms
from focuscrawl.taxonomy import lies_under

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy import sparse

    from focuscrawl.critic.bag_of_words import ClassCounts
    from focuscrawl.critic.calibration import Calibration
    from focuscrawl.critic.languages import LanguageShares
    from focuscrawl.critic.page_vectors import PageRows, PageVectors
    from focuscrawl.foundation.arrays import Bools, Floats, Ints

_INVERSE_PENALTY = 10.0  # scikit-learn's C, for L2 regularisation of logistic regression


class NaiveBayes:
    """Flat (not hierarchical) multinomial naive Bayes over leaf classes [A02 equation 2].

    The probability that a page belongs to the class c is proportional to Pr(c) prod_t
    theta(c,t)^n(t). Here, n(t) is the number of occurrences of the word t in the page, and
    theta(c,t) is the probability of t in c.

    Parameters
    ----------
    counts : word counts of the training pages by class
    uniform_prior : use the same Pr(c) for every class. This suits training sets in which the
        number of examples of a topic does not reflect its frequency on the Web
    languages : languages of the pages

    Notes
    -----
    scikit-learn's `MultinomialNB` computes the logarithms of theta's numerator and denominator
    separately, which would change the last digits of every judgement. For a single page it takes
    dozens of times as long.
    """

    kind: ClassVar[str] = "flat"

    def __init__(
        self,
        counts: ClassCounts,
        *,
        uniform_prior: bool = False,
        languages: LanguageShares = ENGLISH,
    ) -> None:
        self.counts = counts
        self.classes = counts.classes
        self.uniform_prior = uniform_prior
        self.languages = languages
        self._vocabulary = Vocabulary(counts.words)
        self._fit()

    def _fit(self) -> None:
        self._weights = log_theta(self.counts.counts)
        self._prior = _log_prior(self.counts.pages, uniform=self.uniform_prior)

    def log_posteriors(
        self, bags: Sequence[Bag], calibration: Calibration | None = None
    ) -> Floats:
        """Return log Pr(class|page) for each page and class, float64 (n_bags, n_classes)."""
        rows = self._vocabulary.transform(to_terms(bags, self.languages))
        posteriors = self.log_posteriors_of_rows(rows)
        return posteriors if calibration is None else calibration(posteriors, rows.lengths())

    def log_posteriors_of_rows(self, rows: BagRows) -> Floats:
        """Return log Pr(class|page) of pages converted with this model's vocabulary."""
        return log_normalised(rows.dot(self._weights) + self._prior)


class HierarchicalNaiveBayes(NaiveBayes):
    """Naive Bayes down the topic tree by the chain rule: Pr(c|u) = Pr(parent|u) Pr(c|u, parent).

    Each node of the topic tree with several children has a naive Bayes model. The word count of a
    child node is the sum of the word counts of its leaves. The weights of all nodes of the topic
    tree are columns of one matrix, so the words of a page are looked up only once. With
    `uniform_prior`, all children of a node of the topic tree have the same prior probability.
    """

    kind: ClassVar[str] = "hierarchical"

    def _fit(self) -> None:
        counts, n_classes = self.counts, len(self.classes)
        nodes = sibling_groups(self.classes)
        empty = np.zeros((0, n_classes), np.bool_)
        self._weights = np.hstack(
            [
                np.zeros((len(counts.words), 0)),
                *(log_theta(counts.counts @ members.T.astype(np.int64)) for members in nodes),
            ]
        )
        self._prior = np.concatenate(
            [
                np.zeros(0),
                *(
                    _log_prior(members @ counts.pages, uniform=self.uniform_prior)
                    for members in nodes
                ),
            ]
        )
        self._leaf_members = np.vstack([empty, *nodes]).astype(np.float64)
        ends = np.cumsum([0, *map(len, nodes)]).tolist()
        self._nodes = [slice(start, end) for start, end in pairwise(ends)]

    def log_posteriors_of_rows(self, rows: BagRows) -> Floats:
        """Return log Pr(class|page) of pages converted with this model's vocabulary."""
        steps = rows.dot(self._weights) + self._prior
        for node in self._nodes:
            steps[:, node] = log_normalised(steps[:, node])
        # the log-posterior of a leaf is the sum over its ancestors' nodes
        return steps @ self._leaf_members


#: naive Bayes models by the name of their kind
KINDS: dict[str, type[NaiveBayes]] = {
    model.kind: model for model in (NaiveBayes, HierarchicalNaiveBayes)
}


def log_theta(counts: NDArray[np.number]) -> Floats:
    """Return the log-probability of each word in each class, Laplace-smoothed [A02 equation 1].

    Parameters
    ----------
    counts : n(c,t), (n_words, n_classes); fractions if the examples have weights

    Returns
    -------
    float64 (n_words, n_classes) in C order, so that the weights of a word are contiguous
    """
    total = len(counts) + counts.sum(axis=0)
    return np.ascontiguousarray(np.log((1.0 + counts) / np.maximum(total, 1)))


def _log_prior(pages: Ints, *, uniform: bool) -> Floats:
    weight = np.ones(len(pages)) if uniform else pages.astype(np.float64)
    prior: Floats = np.log(weight / weight.sum())
    return prior


def sibling_groups(classes: Sequence[str]) -> list[Bools]:
    """List the nodes of the topic tree that have several children, from the root down.

    A node with a single child is left out, because the child has the same probability as its
    parent.

    Returns
    -------
    One bool array (n_children, n_classes) for each node: which leaves belong to which child
    """
    nodes: dict[str, dict[str, list[int]]] = {}
    for number, path in enumerate(classes):
        at = ""
        for part in path.strip("/").split("/"):
            below = f"{at}/{part}"
            nodes.setdefault(at, {}).setdefault(below, []).append(number)
            at = below
    found = []
    for children in nodes.values():
        if len(children) > 1:
            members = np.zeros((len(children), len(classes)), dtype=bool)
            for child, leaves in enumerate(children.values()):
                members[child, leaves] = True
            found.append(members)
    return found


class LinearModel(NamedTuple):
    """A linear classifier of page vectors.

    Attributes
    ----------
    classes : topic paths, sorted
    weights : float64 (n_words + dimensions, n_columns), words first. With two classes, the one
        column is the log-odds of the second class; otherwise each class has a column
    intercept : float64 (n_columns,)
    """

    classes: tuple[str, ...]
    weights: Floats
    intercept: Floats

    def log_posteriors(self, pages: sparse.csr_matrix) -> Floats:
        """Return log Pr(class|page) of page vectors (see `as_matrix`), (n_pages, n_classes)."""
        return _log_posteriors(pages @ self.weights + self.intercept)

    def scaled(self, factor: float) -> LinearModel:
        """Return the same model with all log-odds multiplied by `factor`."""
        return LinearModel(self.classes, self.weights * factor, self.intercept * factor)


class LogisticModel:
    """Class probabilities by logistic regression on a page's TF-IDF and mean word embedding.

    Logistic regression judges pages much better than naive Bayes, except with very few examples
    (docs/research/critics-studies.md). Texts of links are judged by naive Bayes instead of
    logistic regression.

    Parameters
    ----------
    vectors : transforms pages to vectors
    linear : judges vectors
    link_model : judges link texts; its classes are the same or subclasses

    Notes
    -----
    The weights of logistic regression are fitted to pages of hundreds of words, but a link has
    about three. In naive Bayes, the evidence of each word stands alone and adds up (methods.md 2).
    So naive Bayes judges link texts better (studies of critics).
    """

    kind: ClassVar[str] = "discriminative"

    def __init__(self, vectors: PageVectors, linear: LinearModel, link_model: NaiveBayes) -> None:
        if not all(lies_under(path, linear.classes) for path in link_model.classes):
            raise ValueError("the link model has other classes")
        self.classes = linear.classes
        self.vectors = vectors
        self.languages = vectors.languages
        self.linear = linear
        self.link_model = link_model
        n_words = len(vectors.words)
        self._word_weights = np.ascontiguousarray(linear.weights[:n_words])
        self._meaning_weights = linear.weights[n_words:].astype(np.float32)

    def log_posteriors(
        self, bags: Sequence[Bag], calibration: Calibration | None = None
    ) -> Floats:
        """Return log Pr(class|page) for each page and class, float64 (n_bags, n_classes)."""
        rows = self.vectors.transform(bags)
        logits = rows.words.dot(self._word_weights)
        logits += rows.meaning @ self._meaning_weights + self.linear.intercept
        posteriors = _log_posteriors(logits)
        if calibration is None:
            return posteriors
        return calibration(posteriors, np.array([float(sum(bag.values())) for bag in bags]))

    def marked_link_classes(self, marked: Bools) -> Bools:
        """Return which classes of the link text model are at or below the `marked` classes."""
        topics = [path for path, yes in zip(self.classes, marked.tolist(), strict=True) if yes]
        return np.array([lies_under(path, topics) for path in self.link_model.classes], np.bool_)


def _log_posteriors(logits: Floats) -> Floats:
    if logits.shape[1] == 1:
        logits = np.hstack([np.zeros_like(logits), logits])
    return log_normalised(logits)


def as_matrix(rows: PageRows, n_words: int) -> sparse.csr_matrix:
    """Return page vectors as one sparse matrix (n_pages, n_words + dimensions)."""
    from scipy import sparse  # noqa: PLC0415 - slow to import, needed in training only

    words = sparse.csr_matrix(
        (rows.words.counts, rows.words.ids, rows.words.starts), (len(rows.words), n_words)
    )
    return sparse.csr_matrix(sparse.hstack([words, sparse.csr_matrix(rows.meaning)]))


def fit_logistic(
    pages: sparse.csr_matrix,
    topics: Sequence[str] | NDArray[np.str_],
    weight: Floats | None = None,
) -> LinearModel:
    """Fit a linear classifier to labelled pages by logistic regression.

    Parameters
    ----------
    pages : (n_pages, n_words + dimensions), as `as_matrix` returns them
    topics : class of each page, (n_pages,); at least two distinct classes
    weight : weight of each page, (n_pages,); None for 1
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    # most words of the vocabulary are on none of a few pages: their weights are 0
    used = np.flatnonzero(pages.getnnz(axis=0))
    fitted = LogisticRegression(C=_INVERSE_PENALTY, max_iter=300, tol=1e-3).fit(
        pages[:, used], topics, weight
    )
    weights = np.zeros((pages.shape[1], len(fitted.coef_)))
    weights[used] = fitted.coef_.T
    return LinearModel(tuple(map(str, fitted.classes_)), weights, fitted.intercept_)


def fit_scale(log_posteriors: Floats, truth: NDArray[np.integer]) -> float:
    """Return the factor for the log-odds that maximises the likelihood of held-out pages.

    Parameters
    ----------
    log_posteriors : of models trained without the page, (n_pages, n_classes)
    truth : true classes, (n_pages,)
    """
    from scipy.optimize import minimize_scalar  # noqa: PLC0415

    rows = np.arange(len(truth))

    def loss(log_scale: float) -> float:
        scaled = log_normalised(log_posteriors * np.exp(log_scale))
        return -float(scaled[rows, truth].mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-2.0, 2.0), method="bounded").x))
