"""A linear-chain conditional random field (CRF) with partly known labels.

The forward, backward and Viterbi recursions process many chains of equal length at once, in log
space. The array `nodes` of shape (n, length, states) contains the log-potential of each state at
each position, or ``-inf`` if the state is impossible. The array `edges` of shape (states, states)
contains the log-potential of each transition, from the state of the row to the state of the
column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from focuscrawl.foundation.arrays import Bools, Floats, Ints


_LEAST = 1e-250  # smaller products have lost digits
_MOST = 600.0  # exp of more is near the end of float64


def forward(nodes: Floats, edges: Floats) -> Floats:
    """Return the logarithms of the forward variables alpha, of shape (n, length, states)."""
    alpha = nodes.copy()
    for i in range(1, nodes.shape[1]):
        alpha[:, i] += log_product(alpha[:, i - 1], edges)
    return alpha


def backward(nodes: Floats, edges: Floats) -> Floats:
    """Return the logarithms of the backward variables beta, of shape (n, length, states)."""
    beta = np.zeros_like(nodes)
    for i in range(nodes.shape[1] - 2, -1, -1):
        beta[:, i] = log_product(nodes[:, i + 1] + beta[:, i + 1], edges.T)
    return beta


def log_partition(alpha: Floats) -> Floats:
    """Return the logarithm of the partition function of each chain; -inf for impossible chains."""
    return _log_sum(alpha[:, -1])


def node_marginals(alpha: Floats, beta: Floats, log_z: Floats) -> Floats:
    """Return the probability of each state at each position, of shape (n, length, states)."""
    return np.exp(alpha + beta - log_z[:, None, None])


def edge_marginals(
    nodes: Floats, edges: Floats, alpha: Floats, beta: Floats, *, log_z: Floats, weight: Floats
) -> Floats:
    """Return the expected number of each transition between states, of shape (states, states)."""
    states = edges.shape[0]
    expected = np.zeros((states, states))
    if nodes.shape[1] < 2:
        return expected
    left = alpha[:, :-1].reshape(-1, states)
    right = (nodes + beta)[:, 1:].reshape(-1, states)
    z = np.repeat(log_z, nodes.shape[1] - 1)
    weight = np.repeat(weight, nodes.shape[1] - 1)
    left_top, right_top = left.max(axis=1), right.max(axis=1)
    edge_top = edges.max()
    scale = left_top + right_top + edge_top - z
    safe = scale < _MOST
    a = np.exp(left[safe] - left_top[safe, None])
    b = (
        np.exp(right[safe] - right_top[safe, None])
        * (weight * np.exp(np.minimum(scale, _MOST)))[safe, None]
    )
    expected += (a.T @ b) * np.exp(edges - edge_top)
    for i in np.flatnonzero(~safe).tolist():
        pairs = left[i][:, None] + edges + right[i][None, :] - z[i]
        expected += weight[i] * np.exp(pairs)
    return expected


def viterbi(nodes: Floats, edges: Floats) -> Ints:
    """Return the most probable sequence of states of each chain, int64 (n, length)."""
    n, length, states = nodes.shape
    best = nodes[:, 0]
    came = np.zeros((n, length, states), np.int64)
    for i in range(1, length):
        ways = best[:, :, None] + edges
        came[:, i] = ways.argmax(axis=1)
        best = ways.max(axis=1) + nodes[:, i]
    path = np.empty((n, length), np.int64)
    path[:, -1] = best.argmax(axis=1)
    for i in range(length - 1, 0, -1):
        path[:, i - 1] = came[np.arange(n), i, path[:, i]]
    return path


def log_product(left: Floats, edges: Floats) -> Floats:
    """Return log(exp(left) @ exp(edges)), of shape (n, states), without over- or underflow.

    The function multiplies matrices where the product is exact; for other elements, it sums
    logarithms.
    """
    top = left.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    edge_top = edges.max()
    edge_top = edge_top if np.isfinite(edge_top) else 0.0
    product = np.exp(left - top) @ np.exp(edges - edge_top)
    connected = ((left > -np.inf).astype(np.float64) @ (edges > -np.inf).astype(np.float64)) > 0.0
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(product) + top + edge_top
    lost = ((product < _LEAST) & connected).any(axis=1)
    if lost.any():
        logs[lost] = _log_sum(left[lost][:, :, None] + edges)
    return logs


def _log_sum(logs: Floats) -> Floats:
    from scipy.special import logsumexp  # noqa: PLC0415 - slow to import, few crawls need it

    return logsumexp(logs, axis=1)


class Sequences(NamedTuple):
    """Chains of observations (sequences), stored one after the other in one matrix.

    Attributes
    ----------
    observed : sparse array of shape (n_positions, n_features)
        Features of each position.
    bounds : NDArray[np.int64] of shape (n_chains + 1,)
        Chain c has the positions from ``bounds[c]`` to ``bounds[c + 1]``.
    """

    observed: csr_array
    bounds: Ints

    def __len__(self) -> int:
        return len(self.bounds) - 1


class Batch(NamedTuple):
    """All chains of one length, with the positions of the elements of these chains."""

    nodes: Floats
    at: Ints
    which: Ints


@dataclass(frozen=True)
class Structure:
    """States of a path model (CRF), allowed transitions, and groups of states that share features.

    Attributes
    ----------
    edges : NDArray[np.bool_] of shape (n_states, n_states)
        Whether the state of the column may follow the state of the row.
    starts : NDArray[np.bool_] of shape (n_states,)
        Whether a chain may start in a state.
    groups : NDArray[np.bool_] of shape (n_groups, n_states)
        States that share the features of each group. With the identity no features are shared.
        With a binary hierarchy of states, the weight of a feature in a state is the sum over
        all groups that contain the state [C 3.1.2].
    """

    edges: Bools
    starts: Bools
    groups: Bools

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.starts)


class ChainCRF:
    """Conditional random field over the state sequences that `structure` allows [C section 2].

    Given observations x, the probability Pr(y|x) of a state sequence y is proportional to
    exp(W.F(x, y)), where W are weights and F are features. A state feature is a pair of an
    observed feature and a state. An edge feature is a pair of consecutive states. The optimiser
    L-BFGS maximises the log-likelihood of the labels, summed over all chains with their weights,
    minus the penalty `l2` |W|^2. If a position has several possible states, the likelihood is the
    sum over all sequences with any of the possible states. If all labels are known, the objective
    is the concave function of [C section 2].

    Parameters
    ----------
    structure : Structure
        States, transitions and ties.
    l2 : float
        Strength of the penalty; 1 / (2 sigma^2) for a Gaussian prior of variance sigma^2.
    max_iter : int
        Maximum number of L-BFGS iterations.
    tol : float
        Relative change of the objective at which training stops.

    Attributes
    ----------
    shared_ : NDArray[np.float64] of shape (n_features, n_groups)
        Weight of each feature in each group of states.
    state_ : NDArray[np.float64] of shape (n_features, n_states)
        Weight of each feature in each state: the sum over the state's groups.
    edge_ : NDArray[np.float64] of shape (n_states, n_states)
        Weights of edges; -inf for forbidden edges.
    n_iter_ : int
        Number of iterations.
    """

    def __init__(
        self, structure: Structure, *, l2: float = 0.5, max_iter: int = 150, tol: float = 1e-5
    ) -> None:
        self.structure = structure
        self.l2 = l2
        self.max_iter = max_iter
        self.tol = tol

    def fit(
        self,
        sequences: Sequences,
        known: Bools,
        weight: Floats | None = None,
        on_iteration: Callable[[], object] = lambda: None,
    ) -> ChainCRF:
        """Fit the model to sequences in which each position has one or more possible states.

        Parameters
        ----------
        sequences : Sequences
            Training chains.
        known : NDArray[np.bool_] of shape (n_positions, n_states)
            Possible states of each position; exactly one if the label is known.
        weight : NDArray[np.float64] of shape (n_chains,), or None
            Weight of each chain; 1 by default.
        on_iteration : Callable[[], object]
            Called after each iteration.

        Raises
        ------
        ValueError
            The structure forbids all label sequences that `known` allows for a chain.
        """
        from scipy.optimize import minimize  # noqa: PLC0415 - slow to import

        objective = Objective(self.structure, sequences, known, weight, self.l2)

        iterated: Any = lambda _: on_iteration()  # noqa: E731 - scipy's stubs need the name
        options: Any = {"maxiter": self.max_iter, "ftol": self.tol, "maxcor": 10}
        found = minimize(
            objective,
            np.zeros(objective.parameters),
            jac=True,
            method="L-BFGS-B",
            callback=iterated,
            options=options,
        )
        self.set_weights(*objective.unpack(found.x))
        self.n_iter_ = int(found.nit)
        return self

    def set_weights(self, shared: Floats, edge: Floats) -> None:
        """Set the weights of a fitted model: feature weights `shared` and edge weights `edge`."""
        self.shared_ = shared
        self.state_ = shared @ self.structure.groups
        self.edge_ = np.where(self.structure.edges, edge, -np.inf)

    def marginals(self, sequences: Sequences) -> Floats:
        """Return the probability of each state at every position, of shape (positions, states)."""
        found = np.empty((sequences.observed.shape[0], self.structure.states))
        for nodes, at, _ in self.nodes(sequences):
            alpha, beta = forward(nodes, self.edge_), backward(nodes, self.edge_)
            found[at] = node_marginals(alpha, beta, log_partition(alpha))
        return found

    def predict(self, sequences: Sequences) -> Ints:
        """Return the most probable sequence of states of each chain, int64 (positions,)."""
        found = np.empty(sequences.observed.shape[0], np.int64)
        for nodes, at, _ in self.nodes(sequences):
            found[at] = viterbi(nodes, self.edge_)
        return found

    def nodes(self, sequences: Sequences) -> Iterator[Batch]:
        """Yield the log-potentials of the states of all chains, grouped by chain length."""
        return _batches(self.structure, sequences, sequences.observed @ self.state_)


class Objective:
    """The function that `ChainCRF.fit` minimises, and its gradient."""

    def __init__(
        self,
        structure: Structure,
        sequences: Sequences,
        known: Bools,
        weight: Floats | None,
        l2: float,
    ) -> None:
        self._structure = structure
        self._sequences = sequences
        self._transposed = sequences.observed.T.tocsr()
        self._known = known
        self._weight = np.ones(len(sequences)) if weight is None else weight
        self._l2 = l2
        self._groups = structure.groups.astype(np.float64)
        self._features = sequences.observed.shape[1]
        self._pairs = np.flatnonzero(structure.edges)
        self.parameters = self._features * len(self._groups) + len(self._pairs)
        self._check()

    def unpack(self, weights: Floats) -> tuple[Floats, Floats]:
        """Split the vector of all weights into feature weights and edge weights."""
        cut = self._features * len(self._groups)
        edge = np.zeros(self._structure.edges.shape)
        edge.flat[self._pairs] = weights[cut:]
        return weights[:cut].reshape(self._features, -1), edge

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Return the objective and its gradient, float64 (parameters,)."""
        structure = self._structure
        shared, edge = self.unpack(weights)
        edges = np.where(structure.edges, edge, -np.inf)
        scores = self._sequences.observed @ (shared @ self._groups)
        value = 0.0
        of_nodes = np.empty_like(scores)  # expected counts, less those that agree with the labels
        of_edges = np.zeros_like(edge)
        for nodes, at, which in _batches(structure, self._sequences, scores):
            share = self._weight[which]
            agreeing = np.where(self._known[at], nodes, -np.inf)
            free_z, free_nodes, free_edges = _expected(nodes, edges, share)
            z, known_nodes, known_edges = _expected(agreeing, edges, share)
            value += float(share @ (free_z - z))
            of_nodes[at] = (free_nodes - known_nodes) * share[:, None, None]
            of_edges += free_edges - known_edges
        of_shared = (self._transposed @ of_nodes) @ self._groups.T
        gradient = np.concatenate([of_shared.ravel(), of_edges.flat[self._pairs]])
        gradient += 2.0 * self._l2 * weights
        return value + self._l2 * float(weights @ weights), gradient

    def _check(self) -> None:
        edges = np.where(self._structure.edges, 0.0, -np.inf)
        scores = np.zeros(self._known.shape)
        for nodes, at, which in _batches(self._structure, self._sequences, scores):
            agreeing = np.where(self._known[at], nodes, -np.inf)
            z = log_partition(forward(agreeing, edges))
            if not np.isfinite(z).all():
                wrong = int(which[np.flatnonzero(~np.isfinite(z))[0]])
                raise ValueError(f"chain {wrong} has labels in an order that the states forbid")


def _expected(nodes: Floats, edges: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return log Z, node marginals, and expected edges of weighted chains of one length."""
    alpha, beta = forward(nodes, edges), backward(nodes, edges)
    log_z = log_partition(alpha)
    of_edges = edge_marginals(nodes, edges, alpha, beta, log_z=log_z, weight=weight)
    return log_z, node_marginals(alpha, beta, log_z), of_edges


def _batches(structure: Structure, sequences: Sequences, scores: Floats) -> Iterator[Batch]:
    """Yield the chains of each length with their node potentials `scores`, (positions, states)."""
    lengths = np.diff(sequences.bounds)
    order = np.argsort(lengths, kind="stable")
    cuts = np.flatnonzero(np.diff(lengths[order])) + 1
    for start, end in pairwise([0, *cuts.tolist(), len(order)]):
        which = order[start:end]
        if len(which) and lengths[which[0]]:
            at = sequences.bounds[which][:, None] + np.arange(lengths[which[0]])
            nodes = scores[at]
            nodes[:, 0, ~structure.starts] = -np.inf
            yield Batch(nodes, at, which)
