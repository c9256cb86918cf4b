"""Logistic and ridge regression over hashed features and dense inputs, with a prior."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy import sparse

from focuscrawl.apprentice.lbfgs import descend
from focuscrawl.apprentice.learners.base import Learner
from focuscrawl.foundation.packed_arrays import expect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from focuscrawl.apprentice.learners.matrix import Instances
    from focuscrawl.foundation.arrays import Floats, Ints

_STRENGTH = 0.4  # prior variance of a hashed weight (C of the usual notation)
_LOOSE = 40.0  # variance of the intercept


class _Linear(Learner):
    """Weights found by a few L-BFGS steps a batch, warm from those of the batch before.

    `partial_fit` moves the weights towards the best ones for the instances given, it does not
    remember them: give it a sample of all that is known, of bounded size, and a batch costs the
    same whatever the crawl's age, while the weights stay close to those of a full refit. The few
    steps also keep them from following a small sample all the way.

    Parameters
    ----------
    n_features, prior : see `Learner`; learning is drawn to the prior
    dense_strength : prior variance of a dense weight about its prior
    steps : L-BFGS steps a batch

    Attributes
    ----------
    weights_ : float64 (n_features,)
    base_ : float64 (n_features,), their prior; None: 0
    used_ : int64 (m,), the features whose weight or prior may be other than 0, ascending
    dense_ : float64 (k + 1,)
    """

    unit_length = True
    remembers = False

    base_: Floats | None
    used_: Ints
    weights_: Floats
    dense_: Floats

    def __init__(
        self,
        n_features: int,
        *,
        prior: Sequence[float] = (0.0,),
        dense_strength: float = 0.8,
        steps: int = 8,
    ) -> None:
        super().__init__(n_features, prior=prior)
        self.dense_strength = dense_strength
        self.steps = steps

    def partial_fit(
        self,
        X: Instances,  # noqa: N803
        y: Floats,
        sample_weight: Floats | None = None,
    ) -> Self:
        """Move towards the best weights for these instances; see `Learner.partial_fit`."""
        self._begin()
        if not len(X):
            return self
        columns, matrix = _compact(X, self.n_features)
        turned = matrix.T  # a view, which adds up in the same order
        dense = np.column_stack([X.dense, np.ones(len(X))])
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        m = len(columns)
        base = np.zeros(m) if self.base_ is None else self.base_[columns]
        prior = np.asarray(self.prior, np.float64)
        penalty = np.full(len(prior), 1.0 / self.dense_strength)
        penalty[-1] = 1.0 / _LOOSE

        def loss(point: Floats) -> tuple[float, Floats]:
            hashed, other = point[:m], point[m:]
            moved = hashed - base
            value, slope = self._loss(matrix @ hashed + dense @ other, y)
            slope = slope * weight
            away = other - prior
            pull = moved / _STRENGTH
            gradient = np.concatenate([turned @ slope + pull, slope @ dense + penalty * away])
            total = weight @ value + 0.5 * (pull @ moved) + 0.5 * (penalty * away) @ away
            return float(total), gradient

        start = np.concatenate([self.weights_[columns], self.dense_])
        found = descend(loss, start, steps=self.steps)
        if self.base_ is None:  # new memory is free until it is written to
            self.weights_, self.used_ = np.zeros(self.n_features), columns
        else:
            self.weights_ = self.base_.copy()
            self.used_ = np.union1d(np.flatnonzero(self.base_), columns)
        self.weights_[columns] = found[:m]
        self.dense_ = found[m:]
        return self

    def linear(self) -> tuple[Floats, Floats]:
        """Return weights of hashed features, and of dense inputs; see `Learner.linear`."""
        self._begin()
        return self.weights_, self.dense_

    def get_state(self) -> dict[str, NDArray[np.generic]]:
        """Return the weights that are not 0; see `Learner.get_state`."""
        self._begin()
        used, base = self.used_, self.base_
        return {
            "used": used,
            "weights": self.weights_[used],
            "base": np.zeros(0) if base is None else base[used],
            "dense": self.dense_,
            "prior": np.asarray(self.prior, np.float64),
        }

    def set_state(self, state: Mapping[str, NDArray[np.generic]]) -> Self:
        """Take up the weights; see `Learner.set_state`."""
        used = self.used_ = np.asarray(state["used"], np.int64)
        self.base_ = None
        if len(state["base"]):
            self.base_ = np.zeros(self.n_features)
            self.base_[used] = state["base"]
        self.weights_ = np.zeros(self.n_features)
        self.weights_[used] = state["weights"]
        shape = (len(self.prior),)
        self.dense_ = expect(state, "dense", shape, "f").astype(np.float64)
        self.prior = expect(state, "prior", shape, "f").astype(np.float64).tolist()
        return self

    def believe(self) -> Self:
        """Make what was learned so far the prior of what is learned from now on.

        For a second crawl with the model of the first: its examples are gone, its weights are
        left only as far as new examples ask for it.
        """
        self._begin()
        self.base_ = self.weights_
        self.prior = self.dense_.tolist()
        return self

    @abstractmethod
    def _loss(self, margin: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return loss and slope at each margin."""

    def _begin(self) -> None:
        if not hasattr(self, "weights_"):
            self.base_ = None
            self.used_ = np.zeros(0, np.int64)
            self.weights_ = np.zeros(self.n_features)
            self.dense_ = np.array(self.prior, np.float64)


class LogisticLearner(_Linear):
    """Logistic regression on labels anywhere in [0, 1]: cross-entropy against R(v)."""

    def response(self, margin: Floats) -> Floats:
        """Return Pr(high), float64 (n,)."""
        return logistic(margin)

    def _loss(self, margin: Floats, y: Floats) -> tuple[Floats, Floats]:
        return np.logaddexp(0.0, margin) - y * margin, logistic(margin) - y


class LinearRegressor(_Linear):
    """Continuous ridge regression of R(v) [A02 section 4]."""

    def response(self, margin: Floats) -> Floats:
        """Return the expected relevance, clipped to [0, 1], float64 (n,)."""
        return np.clip(margin, 0.0, 1.0)

    def _loss(self, margin: Floats, y: Floats) -> tuple[Floats, Floats]:
        # a variance of 1/8 makes it about as stiff as the logistic loss
        error = margin - y
        return 4.0 * error**2, 8.0 * error


def logistic(margin: Floats) -> Floats:
    """Return 1 / (1 + exp(-margin)), without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * margin))


def _compact(instances: Instances, n_features: int) -> tuple[Ints, sparse.csr_matrix]:
    """Return the columns in use, and the matrix of them."""
    rows = instances.rows
    used = np.zeros(n_features, bool)
    used[rows.indices] = True
    columns = np.flatnonzero(used)
    renumbered = np.zeros(n_features, np.int32)
    renumbered[columns] = np.arange(len(columns), dtype=np.int32)
    matrix = sparse.csr_matrix(
        (instances.values, renumbered[rows.indices], rows.indptr),
        shape=(len(rows), len(columns)),
    )
    return columns, matrix
