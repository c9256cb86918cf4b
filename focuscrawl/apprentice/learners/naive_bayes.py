"""The paper's own apprentice: two-bucket multinomial naive Bayes [A02 section 2.3]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from focuscrawl.apprentice.learners.linear import logistic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from focuscrawl.apprentice.learners.instances import Instances


class NaiveBayesLearner:
    """Pr(high) by naive Bayes over hashed features, Laplace-smoothed [A02 equations 1 and 2].

    Dense inputs are not looked at, values of features are: give counts, or ones. The vocabulary
    is what was seen in training; other features say nothing.

    Parameters
    ----------
    n_features : size of the hashed space
    threshold : relevance above which an instance is in the high bucket

    Attributes
    ----------
    counts_ : float64 (2, n_features), how often each feature was seen in low and high instances
    instances_ : float64 (2,), low and high instances seen
    """

    def __init__(self, n_features: int = 1 << 18, *, threshold: float = 0.5) -> None:
        self.n_features = n_features
        self.threshold = threshold

    def partial_fit(
        self,
        X: Instances,  # noqa: N803
        y: NDArray[np.float64],
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Self:
        """Count; see `Learner.partial_fit`."""
        self._begin()
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        high = y > self.threshold
        each = np.repeat(weight, X.rows.lengths) * X.values
        in_high = np.repeat(high, X.rows.lengths)
        for bucket, chosen, inside in ((0, ~in_high, ~high), (1, in_high, high)):
            self.counts_[bucket] += np.bincount(
                X.rows.indices[chosen], each[chosen], self.n_features
            )
            self.instances_[bucket] += weight[inside].sum()
        return self

    def predict(self, X: Instances) -> NDArray[np.float64]:  # noqa: N803
        """Return Pr(high), float64 (n,)."""
        self._begin()
        seen = self.counts_.sum(axis=0) > 0
        size = max(float(seen.sum()), 1.0)
        total = size + self.counts_.sum(axis=1)
        odds = np.zeros(self.n_features)
        odds[seen] = np.log1p(self.counts_[1, seen]) - np.log1p(self.counts_[0, seen])
        odds[seen] += np.log(total[0]) - np.log(total[1])
        # one instance of each kind is taken as seen: a bucket may be empty at the start
        prior = np.log((self.instances_[1] + 1.0) / (self.instances_[0] + 1.0))
        return logistic(X.dot(odds) + prior)

    def get_state(self) -> dict[str, NDArray[np.generic]]:
        """Return the counts; see `Learner.get_state`."""
        self._begin()
        used = np.flatnonzero(self.counts_.sum(axis=0))
        return {"used": used, "counts": self.counts_[:, used], "instances": self.instances_}

    def set_state(self, state: Mapping[str, NDArray[np.generic]]) -> Self:
        """Take up the counts; see `Learner.set_state`."""
        self.counts_ = np.zeros((2, self.n_features))
        self.counts_[:, np.asarray(state["used"], np.int64)] = state["counts"]
        self.instances_ = np.array(state["instances"], np.float64)
        return self

    def _begin(self) -> None:
        if not hasattr(self, "counts_"):
            self.counts_ = np.zeros((2, self.n_features))
            self.instances_ = np.zeros(2)
