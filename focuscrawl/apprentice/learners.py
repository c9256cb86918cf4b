"""Incremental linear estimators of relevance, with the conventions of scikit-learn.

Learners have the methods ``partial_fit(X, y, sample_weight)`` and ``predict(X)``. The names of
fitted attributes end in ``_``. The methods ``get_state`` and ``set_state`` save and load the
fitted attributes as plain arrays.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from focuscrawl.critic.classifiers import log_theta
from focuscrawl.foundation.arrays import pack_arrays, require_array, unpack_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.hashing import SparseRows
    from focuscrawl.foundation.arrays import Floats, Ints


_LBFGS_MEMORY = 8  # earlier steps that approximate the Hessian
_ARMIJO = 1e-4  # share of the linear decrease that a step must reach (Armijo condition)
_MIN_STEP = 1e-6
_HASHED_VARIANCE = 0.4  # prior variance of a hashed weight (C in scikit-learn)
_INTERCEPT_VARIANCE = 40.0
_BOUNDARY = 0.5  # relevance above which an instance has the class "high", unless classes are equal


class Instances(NamedTuple):
    """Training instances with hashed features and dense inputs.

    Attributes
    ----------
    rows : hashed features, one row an instance
    values : float64 (nnz,), values of the hashed features
    dense : float64 (n_instances, k), dense inputs; k may be 0
    """

    rows: SparseRows
    values: Floats
    dense: Floats

    def __len__(self) -> int:
        return len(self.rows)

    def dot(self, weights: Floats) -> Floats:
        """Return the matrix of hashed features times the vector `weights`, (n_instances,)."""
        return row_sums(weights[self.rows.indices] * self.values, self.rows.indptr)


class Learner(ABC):
    """Base class of linear models that predict relevance from a weighted sum of features.

    Parameters
    ----------
    n_features : size of the hashed space
    prior : length k + 1, prior weights of the dense inputs, then of the intercept

    Attributes
    ----------
    unit_length : whether the features of an instance must be scaled to length 1
    accumulates : whether the model keeps the statistics of earlier instances. Other models need
        old instances together with new ones.
    """

    unit_length: bool
    accumulates: bool

    def __init__(self, n_features: int, *, prior: Sequence[float] = (0.0,)) -> None:
        self.n_features = n_features
        self.prior = prior

    @abstractmethod
    def partial_fit(
        self,
        X: Instances,  # noqa: N803 - as in scikit-learn
        y: Floats,
        sample_weight: Floats | None = None,
    ) -> Self:
        """Train on instances whose labels `y` (n,) are in [0, 1].

        Training replaces the fitted arrays, so earlier shallow copies of the learner do not
        change.
        """

    def margin(self, X: Instances) -> Floats:  # noqa: N803
        """Return the weighted sum of the features of each instance, float64 (n,)."""
        weights, dense = self.linear()
        total: Floats = X.dense @ dense[:-1] + dense[-1]
        return total + X.dot(weights)

    def predict(self, X: Instances) -> Floats:  # noqa: N803
        """Return the predicted relevance (naive Bayes: probability of high relevance), (n,)."""
        return self.response(self.margin(X))

    @abstractmethod
    def linear(self) -> tuple[Floats, Floats]:
        """Return two arrays: weights of hashed features; weights of dense inputs and intercept.

        An untrained learner returns the prior weights.
        """

    @abstractmethod
    def response(self, margin: Floats) -> Floats:
        """Convert weighted sums (n,) to predictions in [0, 1]."""

    def use_as_prior(self) -> Self:
        """Use the present weights as the prior weights of later training."""
        return self

    @abstractmethod
    def get_state(self) -> dict[str, NDArray[np.generic]]:
        """Return the fitted attributes of the learner as arrays."""

    @abstractmethod
    def set_state(self, state: Mapping[str, NDArray[np.generic]]) -> Self:
        """Load the fitted attributes from the result of `get_state`."""


class _LbfgsLearner(Learner):
    """Base class of learners that take a few L-BFGS steps a batch, from the last weights.

    `partial_fit` moves the weights towards the optimum for the given instances, and does not store
    the instances. With a bounded sample of all instances, the cost of a batch stays constant, and
    the weights stay close to those of a full refit. Few steps also limit overfitting to a small
    sample.

    Parameters
    ----------
    n_features, prior : see `Learner`
    dense_variance : prior variance of the weight of a dense input
    steps : L-BFGS steps a batch

    Attributes
    ----------
    weights_ : float64 (n_features,), weights of the hashed features
    base_ : float64 (n_features,) or None, prior means of `weights_`; None if all are 0
    used_ : int64 (m,), features whose weight or prior mean may differ from 0, ascending
    dense_ : float64 (k + 1,), weights of the dense inputs, then the intercept
    """

    unit_length = True
    accumulates = False

    base_: Floats | None
    used_: Ints
    weights_: Floats
    dense_: Floats

    def __init__(
        self,
        n_features: int,
        *,
        prior: Sequence[float] = (0.0,),
        dense_variance: float = 0.8,
        steps: int = 8,
    ) -> None:
        super().__init__(n_features, prior=prior)
        self.dense_variance = dense_variance
        self.steps = steps

    def partial_fit(
        self,
        X: Instances,  # noqa: N803
        y: Floats,
        sample_weight: Floats | None = None,
    ) -> Self:
        """Fit the weights to these instances by L-BFGS; see `Learner.partial_fit`."""
        self._initialize()
        if not len(X):
            return self
        columns, matrix = _compact_columns(X, self.n_features)
        transposed = matrix.T  # a view, which adds in the same order
        dense = np.column_stack([X.dense, np.ones(len(X))])
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        m = len(columns)
        base = np.zeros(m) if self.base_ is None else self.base_[columns]
        prior = np.asarray(self.prior, np.float64)
        penalty = np.full(len(prior), 1.0 / self.dense_variance)
        penalty[-1] = 1.0 / _INTERCEPT_VARIANCE

        def loss(point: Floats) -> tuple[float, Floats]:
            hashed, other = point[:m], point[m:]
            moved = hashed - base
            value, slope = self._loss(matrix @ hashed + dense @ other, y)
            slope = slope * weight
            away = other - prior
            pull = moved / _HASHED_VARIANCE
            gradient = np.concatenate([transposed @ slope + pull, slope @ dense + penalty * away])
            total = weight @ value + 0.5 * (pull @ moved) + 0.5 * (penalty * away) @ away
            return float(total), gradient

        start = np.concatenate([self.weights_[columns], self.dense_])
        found = minimize_lbfgs(loss, start, steps=self.steps)
        if self.base_ is None:  # pages of np.zeros cost no memory until written
            self.weights_, self.used_ = np.zeros(self.n_features), columns
        else:
            self.weights_ = self.base_.copy()
            self.used_ = np.union1d(np.flatnonzero(self.base_), columns)
        self.weights_[columns] = found[:m]
        self.dense_ = found[m:]
        return self

    def linear(self) -> tuple[Floats, Floats]:
        """Return the weights; see `Learner.linear`."""
        self._initialize()
        return self.weights_, self.dense_

    def get_state(self) -> dict[str, NDArray[np.generic]]:
        """Return the fitted weights that are not 0; see `Learner.get_state`."""
        self._initialize()
        used, base = self.used_, self.base_
        return {
            "used": used,
            "weights": self.weights_[used],
            "base": np.zeros(0) if base is None else base[used],
            "dense": self.dense_,
            "prior": np.asarray(self.prior, np.float64),
        }

    def set_state(self, state: Mapping[str, NDArray[np.generic]]) -> Self:
        """Load the fitted weights; see `Learner.set_state`."""
        used = self.used_ = np.asarray(state["used"], np.int64)
        self.base_ = None
        if len(state["base"]):
            self.base_ = np.zeros(self.n_features)
            self.base_[used] = state["base"]
        self.weights_ = np.zeros(self.n_features)
        self.weights_[used] = state["weights"]
        shape = (len(self.prior),)
        self.dense_ = require_array(state, "dense", shape, "f").astype(np.float64)
        self.prior = require_array(state, "prior", shape, "f").astype(np.float64).tolist()
        return self

    def use_as_prior(self) -> Self:
        """Use the present weights as the prior weights of training in a second crawl."""
        self._initialize()
        self.base_ = self.weights_
        self.prior = self.dense_.tolist()
        return self

    @abstractmethod
    def _loss(self, margin: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return the loss and its derivative at each margin."""

    def _initialize(self) -> None:
        if not hasattr(self, "weights_"):
            self.base_ = None
            self.used_ = np.zeros(0, np.int64)
            self.weights_ = np.zeros(self.n_features)
            self.dense_ = np.array(self.prior, np.float64)


class LogisticLearner(_LbfgsLearner):
    """Logistic regression whose labels are relevances in [0, 1]; the loss is the cross-entropy."""

    def response(self, margin: Floats) -> Floats:
        """Return Pr(high), float64 (n,)."""
        return logistic(margin)

    def _loss(self, margin: Floats, y: Floats) -> tuple[Floats, Floats]:
        return np.logaddexp(0.0, margin) - y * margin, logistic(margin) - y


class LinearRegressor(_LbfgsLearner):
    """Ridge regression of the relevance [A02 section 4]."""

    def response(self, margin: Floats) -> Floats:
        """Return the expected relevance, clipped to [0, 1], float64 (n,)."""
        return np.clip(margin, 0.0, 1.0)

    def _loss(self, margin: Floats, y: Floats) -> tuple[Floats, Floats]:
        # with a variance of 1/8, the curvature is about that of the logistic loss
        error = margin - y
        return 4.0 * error**2, 8.0 * error


def _compact_columns(instances: Instances, n_features: int) -> tuple[Ints, sparse.csr_matrix]:
    """Return the features in use, ascending, and the matrix of these columns."""
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


def minimize_lbfgs(
    function: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    *,
    steps: int,
    tolerance: float = 1e-5,
) -> Floats:
    """Minimise a smooth convex function by up to `steps` L-BFGS steps; return the best point.

    Parameters
    ----------
    function : returns value and gradient at a point of shape (n,)
    start : float64 (n,), first point
    tolerance : the search stops when a step decreases the value by less than this share

    Notes
    -----
    `scipy.optimize.minimize` has another line search, so recorded crawls would change. Its
    overhead also exceeds the cost of a sparse logistic loss.
    """
    point = start
    value, gradient = function(point)
    moves: list[tuple[Floats, Floats, float]] = []
    for _ in range(steps):
        direction = _direction(gradient, moves)
        slope = float(gradient @ direction)
        if slope >= 0.0:
            break
        step = 1.0 if moves else min(1.0, 1.0 / (float(np.abs(gradient).sum()) + 1e-12))
        while True:
            candidate = point + step * direction
            new_value, new_gradient = function(candidate)
            if new_value <= value + _ARMIJO * step * slope:
                break
            step *= 0.4
            if step < _MIN_STEP:
                return point
        move, change = candidate - point, new_gradient - gradient
        curvature = float(move @ change)
        if curvature > 1e-12:
            moves = [*moves[1 - _LBFGS_MEMORY :], (move, change, curvature)]
        gain = value - new_value
        point, value, gradient = candidate, new_value, new_gradient
        if gain <= tolerance * max(abs(value), 1.0):
            break
    return point


def _direction(gradient: Floats, moves: list[tuple[Floats, Floats, float]]) -> Floats:
    """Return the L-BFGS descent direction by the last moves."""
    direction = -gradient
    shares = []
    for move, change, curvature in reversed(moves):
        share = float(move @ direction) / curvature
        shares.append(share)
        direction = direction - share * change
    if moves:
        _, change, curvature = moves[-1]
        direction *= curvature / float(change @ change)
    for (move, change, curvature), share in zip(moves, reversed(shares), strict=True):
        direction = direction + (share - float(change @ direction) / curvature) * move
    return direction


class NaiveBayesLearner(Learner):
    """Naive Bayes on hashed features; predicts the probability of high relevance [A02 1, 2].

    The value of a feature must be a count, or 1 if the feature is present. Features that are not
    in the training set are ignored. The dense inputs are used only while the training set lacks
    instances of one of the two classes (high or low relevance).

    Parameters
    ----------
    n_features, prior : see `Learner`
    equal_buckets : whether the boundary of the classes is the median of the first training set
        with two different labels, as in Torgo and Gama's equally probable intervals, and not 1/2

    Attributes
    ----------
    boundary_ : float, relevance above which an instance has the class "high"
    counts_ : float64 (2, n_features), frequency of each feature in the classes "low" and "high"
    instances_ : float64 (2,), number of instances of the classes "low" and "high"
    """

    unit_length = False
    accumulates = True

    boundary_: float
    counts_: Floats
    instances_: Floats

    def __init__(
        self, n_features: int, *, prior: Sequence[float] = (0.0,), equal_buckets: bool = False
    ) -> None:
        super().__init__(n_features, prior=prior)
        self.equal_buckets = equal_buckets

    def partial_fit(
        self,
        X: Instances,  # noqa: N803
        y: Floats,
        sample_weight: Floats | None = None,
    ) -> Self:
        """Count the features of the instances by class; see `Learner.partial_fit`."""
        self._initialize()
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        if self.equal_buckets and not self.instances_.all():
            self.boundary_ = equal_boundary(y)
        high = y > self.boundary_
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
        """Return the log-odds of the features and of the classes; see `Learner.linear`."""
        self._initialize()
        odds, dense = np.zeros(self.n_features), np.array(self.prior, np.float64)
        if not self.instances_.all():
            return odds, dense
        seen = self.counts_.sum(axis=0) > 0
        low, high = log_theta(self.counts_[:, seen].T).T
        odds[seen] = high - low
        dense[:-1] = 0.0
        dense[-1] = np.log(self.instances_[1]) - np.log(self.instances_[0])
        return odds, dense

    def response(self, margin: Floats) -> Floats:
        """Return Pr(high), float64 (n,)."""
        return logistic(margin)

    def get_state(self) -> dict[str, NDArray[np.generic]]:
        """Return the feature counts; see `Learner.get_state`."""
        self._initialize()
        used = np.flatnonzero(self.counts_.sum(axis=0))
        return {
            "used": used,
            "counts": self.counts_[:, used],
            "instances": self.instances_,
            "boundary": np.array(self.boundary_),
        }

    def set_state(self, state: Mapping[str, NDArray[np.generic]]) -> Self:
        """Load the feature counts; see `Learner.set_state`."""
        self.counts_ = np.zeros((2, self.n_features))
        self.counts_[:, np.asarray(state["used"], np.int64)] = state["counts"]
        self.instances_ = require_array(state, "instances", (2,), "f").astype(np.float64)
        self.boundary_ = float(require_array(state, "boundary", (), "f"))
        return self

    def _initialize(self) -> None:
        if not hasattr(self, "counts_"):
            self.boundary_ = _BOUNDARY
            self.counts_ = np.zeros((2, self.n_features))
            self.instances_ = np.zeros(2)


def equal_boundary(y: Floats) -> float:
    """Return the label b that divides labels most evenly into labels <= b and labels > b.

    If all labels are equal, no label divides them, and the result is 1/2.
    """
    values, counts = np.unique(y, return_counts=True)
    if len(values) < 2:
        return _BOUNDARY
    below = np.cumsum(counts)[:-1]
    return float(values[np.abs(2 * below - len(y)).argmin()])


def logistic(margin: Floats) -> Floats:
    """Return 1 / (1 + exp(-margin)), without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * margin))


def unit_scale(rows: SparseRows) -> Floats:
    """Return the factors that scale each row to length 1, float64 (n,)."""
    if rows.values is None:
        return 1.0 / np.sqrt(np.maximum(rows.lengths, 1))
    squares = row_sums(rows.values.astype(np.float64) ** 2, rows.indptr)
    return 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))


def row_sums(values: NDArray[np.floating], indptr: Ints) -> Floats:
    """Return the sum of the values of each CSR row; 0 for an empty row."""
    total = np.zeros(len(indptr) - 1)
    nonempty = (indptr[1:] > indptr[:-1]).nonzero()[0]
    if len(nonempty):
        total[nonempty] = np.add.reduceat(values, indptr[nonempty])
    return total


def select_prefix(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names start with `prefix` (two letters), without the prefix."""
    return {name[2:]: arrays[name] for name in arrays if name.startswith(prefix)}


def pack(learner: Learner, **arrays: NDArray[np.generic]) -> bytes:
    """Pack a learner and further arrays as bytes, without pickling."""
    model = {f"m_{name}": value for name, value in learner.get_state().items()}
    return pack_arrays(model | arrays, compressed=False)


def join_packs(first: bytes, second: bytes) -> bytes:
    """Join two results of `pack`; `split_packs` separates the results again."""
    return len(first).to_bytes(8, "little") + first + second


def split_packs(joined: bytes) -> tuple[bytes, bytes]:
    """Return the two results of `pack` that `join_packs` joined."""
    end = 8 + int.from_bytes(joined[:8], "little")
    return joined[8:end], joined[end:]


def pack_options(options: Mapping[str, Any]) -> NDArray[np.uint8]:
    """Encode options as an array of bytes that can be passed to `pack`."""
    return np.frombuffer(json.dumps(options).encode(), np.uint8)


def unpack_options(packed: bytes) -> dict[str, Any]:
    """Return the options in the result of `pack`."""
    options: dict[str, Any] = json.loads(unpack_arrays(packed)["options"].tobytes())
    return options
