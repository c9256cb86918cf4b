"""Two-bucket multinomial naive Bayes, the paper's own learner [A02 section 2.3]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from focuscrawl.apprentice.learners.base import Learner
from focuscrawl.apprentice.learners.linear import logistic
from focuscrawl.foundation.packed_arrays import expect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from focuscrawl.apprentice.learners.matrix import Instances
    from focuscrawl.foundation.arrays import Floats

_HIGH = 0.5  # relevance above which an instance is in the high bucket


class NaiveBayesLearner(Learner):
    """Pr(high) by naive Bayes over hashed features, Laplace-smoothed [A02 equations 1 and 2].

    Values of features are looked at: give counts, or ones. The vocabulary is what was seen in
    training; other features say nothing. Dense inputs count only while a bucket is empty.

    Attributes
    ----------
    counts_ : float64 (2, n_features), how often each feature was seen in low and high instances
    instances_ : float64 (2,), low and high instances seen
    """

    unit_length = False
    remembers = True

    counts_: Floats
    instances_: Floats

    def partial_fit(
        self,
        X: Instances,  # noqa: N803
        y: Floats,
        sample_weight: Floats | None = None,
    ) -> Self:
        """Count; see `Learner.partial_fit`."""
        self._begin()
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        high = y > _HIGH
        each = np.repeat(weight, X.rows.lengths) * X.values
        in_high = np.repeat(high, X.rows.lengths)
        self.counts_, self.instances_ = self.counts_.copy(), self.instances_.copy()
        for bucket, chosen, inside in ((0, ~in_high, ~high), (1, in_high, high)):
            self.counts_[bucket] += np.bincount(
                X.rows.indices[chosen], each[chosen], self.n_features
            )
            self.instances_[bucket] += weight[inside].sum()
        return self

    def linear(self) -> tuple[Floats, Floats]:
        """Return the log-odds of features, and of the buckets; see `Learner.linear`."""
        self._begin()
        odds, dense = np.zeros(self.n_features), np.array(self.prior, np.float64)
        if not self.instances_.all():
            return odds, dense
        seen = self.counts_.sum(axis=0) > 0
        total = max(float(seen.sum()), 1.0) + self.counts_.sum(axis=1)
        odds[seen] = np.log1p(self.counts_[1, seen]) - np.log1p(self.counts_[0, seen])
        odds[seen] += np.log(total[0]) - np.log(total[1])
        dense[:-1] = 0.0
        dense[-1] = np.log(self.instances_[1]) - np.log(self.instances_[0])
        return odds, dense

    def response(self, margin: Floats) -> Floats:
        """Return Pr(high), float64 (n,)."""
        return logistic(margin)

    def get_state(self) -> dict[str, NDArray[np.generic]]:
        """Return the counts; see `Learner.get_state`."""
        self._begin()
        used = np.flatnonzero(self.counts_.sum(axis=0))
        return {"used": used, "counts": self.counts_[:, used], "instances": self.instances_}

    def set_state(self, state: Mapping[str, NDArray[np.generic]]) -> Self:
        """Take up the counts; see `Learner.set_state`."""
        self.counts_ = np.zeros((2, self.n_features))
        self.counts_[:, np.asarray(state["used"], np.int64)] = state["counts"]
        self.instances_ = expect(state, "instances", (2,), "f").astype(np.float64)
        return self

    def _begin(self) -> None:
        if not hasattr(self, "counts_"):
            self.counts_ = np.zeros((2, self.n_features))
            self.instances_ = np.zeros(2)
