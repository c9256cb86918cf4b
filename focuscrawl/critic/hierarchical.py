"""Hierarchical naive Bayes: the chain rule down the topic tree [F99 section 3.1, METHODS 2]."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from focuscrawl.critic.bag_of_words import Bag, BagRows, Vocabulary
from focuscrawl.critic.log_probabilities import log_normalised
from focuscrawl.critic.naive_bayes import log_prior, log_theta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.calibration import Calibration
    from focuscrawl.critic.counts import ClassCounts


class HierarchicalNaiveBayes:
    """Pr(c|u) = Pr(parent|u) Pr(c|u, parent), one naive Bayes a node with children [F99].

    A child's word counts are those of all leaves under it. The nodes' matrices stand side by
    side, one column a child, so that a page is still read once.

    Parameters
    ----------
    counts : what was learned, over the leaves
    uniform_prior : give all children of a node the same Pr(c|parent)

    Attributes
    ----------
    classes : the leaf classes, the columns of every posterior
    """

    kind: ClassVar[str] = "hierarchical"

    def __init__(self, counts: ClassCounts, *, uniform_prior: bool = False) -> None:
        self.counts = counts
        self.classes = counts.classes
        self.uniform_prior = uniform_prior
        self._vocabulary = Vocabulary(counts.words)
        self._nodes: list[slice] = []
        weights: list[NDArray[np.float64]] = []
        priors: list[NDArray[np.float64]] = []
        reaches: list[NDArray[np.bool_]] = []
        width = 0
        for reach in siblings(counts.classes):
            weights.append(log_theta(counts.counts @ reach.T.astype(np.int64)))
            priors.append(log_prior(reach @ counts.pages, uniform=uniform_prior))
            reaches.append(reach)
            self._nodes.append(slice(width, width + len(reach)))
            width += len(reach)
        empty = np.zeros((0, len(counts.classes)), dtype=bool)
        self._weights = np.hstack([np.zeros((len(counts.words), 0)), *weights])
        self._prior = np.concatenate([np.zeros(0), *priors])
        self._reach = np.vstack([empty, *reaches]).astype(np.float64)

    def log_posteriors(
        self, bags: Sequence[Bag], calibration: Calibration | None = None
    ) -> NDArray[np.float64]:
        """Return log Pr(c|u), float64 (n_bags, n_classes), each row a distribution."""
        rows = self._vocabulary.read(bags)
        posteriors = self.log_posteriors_of_rows(rows)
        return posteriors if calibration is None else calibration(posteriors, rows.lengths())

    def log_posteriors_of_rows(self, rows: BagRows) -> NDArray[np.float64]:
        """Return log Pr(c|u) of pages already numbered by this model's own words."""
        steps = rows.dot(self._weights) + self._prior
        for node in self._nodes:
            steps[:, node] = log_normalised(steps[:, node])
        # a leaf's log-posterior is the sum of the steps that lead down to it
        posteriors: NDArray[np.float64] = steps @ self._reach
        return posteriors


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
