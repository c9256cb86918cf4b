"""Multinomial naive Bayes, flat [A02 section 2.3] or down the topic tree [F99, METHODS 2]."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from focuscrawl.critic.bag_of_words import Bag, BagRows, Vocabulary
from focuscrawl.critic.calibration import log_normalised
from focuscrawl.critic.languages import read_as
from focuscrawl.critic.written import ENGLISH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.calibration import Calibration
    from focuscrawl.critic.counts import ClassCounts
    from focuscrawl.critic.written import Shares


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
    languages : that pages are in

    Attributes
    ----------
    classes : the leaf classes, the columns of every posterior
    """

    kind: ClassVar[str] = "flat"

    def __init__(
        self, counts: ClassCounts, *, uniform_prior: bool = False, languages: Shares = ENGLISH
    ) -> None:
        self.counts = counts
        self.classes = counts.classes
        self.uniform_prior = uniform_prior
        self.languages = languages
        self._vocabulary = Vocabulary(counts.words)
        self._learn()

    def _learn(self) -> None:
        self._weights = log_theta(self.counts.counts)
        self._prior = log_prior(self.counts.pages, uniform=self.uniform_prior)

    def log_posteriors(
        self, bags: Sequence[Bag], calibration: Calibration | None = None
    ) -> NDArray[np.float64]:
        """Return log Pr(c|u), float64 (n_bags, n_classes), each row a distribution."""
        rows = self._vocabulary.read(read_as(bags, self.languages))
        posteriors = self.log_posteriors_of_rows(rows)
        return posteriors if calibration is None else calibration(posteriors, rows.lengths())

    def log_posteriors_of_rows(self, rows: BagRows) -> NDArray[np.float64]:
        """Return log Pr(c|u) of pages already numbered by this model's own words."""
        return log_normalised(rows.dot(self._weights) + self._prior)


class HierarchicalNaiveBayes(NaiveBayes):
    """Pr(c|u) = Pr(parent|u) Pr(c|u, parent): the chain rule down the topic tree [F99 3.1].

    There is one naive Bayes for each node with several children; the word counts of a child are
    those of all leaves under it. The nodes' matrices stand side by side, one column a child, so
    that a page is still read once. With `uniform_prior` all children of a node have the same
    Pr(c|parent).
    """

    kind: ClassVar[str] = "hierarchical"

    def _learn(self) -> None:
        counts, n_classes = self.counts, len(self.classes)
        nodes = siblings(self.classes)
        empty = np.zeros((0, n_classes), np.bool_)
        self._weights = np.hstack(
            [
                np.zeros((len(counts.words), 0)),
                *(log_theta(counts.counts @ reach.T.astype(np.int64)) for reach in nodes),
            ]
        )
        self._prior = np.concatenate(
            [
                np.zeros(0),
                *(log_prior(reach @ counts.pages, uniform=self.uniform_prior) for reach in nodes),
            ]
        )
        self._reach = np.vstack([empty, *nodes]).astype(np.float64)
        ends = np.cumsum([0, *map(len, nodes)]).tolist()
        self._nodes = [slice(start, end) for start, end in pairwise(ends)]

    def log_posteriors_of_rows(self, rows: BagRows) -> NDArray[np.float64]:
        """Return log Pr(c|u) of pages already numbered by this model's own words."""
        steps = rows.dot(self._weights) + self._prior
        for node in self._nodes:
            steps[:, node] = log_normalised(steps[:, node])
        # a leaf's log-posterior is the sum of the steps that lead down to it
        posteriors: NDArray[np.float64] = steps @ self._reach
        return posteriors


#: the models that learn from examples, by the name of their kind
KINDS: dict[str, type[NaiveBayes]] = {
    model.kind: model for model in (NaiveBayes, HierarchicalNaiveBayes)
}


def siblings(classes: Sequence[str]) -> list[NDArray[np.bool_]]:
    """List the nodes of the topic tree with several children, from the root down.

    Parameters
    ----------
    classes : leaf paths

    Returns
    -------
    One bool (n_children, n_classes) a node: which leaves lie under (or are) each child. A node
    with one child is left out: Pr(child|parent) = 1.
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
            reach = np.zeros((len(children), len(classes)), dtype=bool)
            for child, leaves in enumerate(children.values()):
                reach[child, leaves] = True
            found.append(reach)
    return found
