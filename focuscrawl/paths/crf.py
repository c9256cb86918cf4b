"""A linear-chain conditional random field with tied states and partly known labels.

Forward, backward and Viterbi recursions are over many chains at once, in log space. They take
`nodes`, float64 (n, length, states): the log-potential of each state at each position of n chains
of one length, ``-inf`` where a state is impossible, and `edges`, float64 (states, states): the
log-potential of going from a state (row) to a state (column).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scipy.sparse import csr_array

    from focuscrawl.foundation.arrays import Bools, Floats, Ints


_LEAST = 1e-250  # smaller products have lost digits, or all
_MOST = 600.0  # exp of more is near the end of float64


def forward(nodes: Floats, edges: Floats) -> Floats:
    """Return log alpha (n, length, states): all ways to a state at a position (eq. 6)."""
    alpha = nodes.copy()
    for i in range(1, nodes.shape[1]):
        alpha[:, i] += log_product(alpha[:, i - 1], edges)
    return alpha


def backward(nodes: Floats, edges: Floats) -> Floats:
    """Return log beta (n, length, states): all ways on from a state, 0 at the last position."""
    beta = np.zeros_like(nodes)
    for i in range(nodes.shape[1] - 2, -1, -1):
        beta[:, i] = log_product(nodes[:, i + 1] + beta[:, i + 1], edges.T)
    return beta


def log_partition(alpha: Floats) -> Floats:
    """Return log Z (n,) of chains; -inf where no sequence of states is possible."""
    return _log_sum(alpha[:, -1])


def node_marginals(alpha: Floats, beta: Floats, log_z: Floats) -> Floats:
    """Return Pr(y_i = y | x), (n, length, states)."""
    marginals: Floats = np.exp(alpha + beta - log_z[:, None, None])
    return marginals


def edge_marginals(
    nodes: Floats,
    edges: Floats,
    alpha: Floats,
    beta: Floats,
    *,
    log_z: Floats,
    weight: Floats,
) -> Floats:
    """Return how often each edge is expected in chains of these weights (n,): (states, states)."""
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
    """Return the most probable states of each chain, int64 (n, length); first ones on a tie."""
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
    """Return log(exp(left) @ exp(edges)), (n, states), without over- or underflow.

    A product of matrices where that is exact, and the sum of logarithms where it is not.
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

    total: Floats = logsumexp(logs, axis=1)
    return total


class Sequences(NamedTuple):
    """n chains of observations, one after another.

    Attributes
    ----------
    observed : sparse (positions, features), what is seen at each position
    bounds : int64 (n + 1,), chain c has the positions ``bounds[c]`` to ``bounds[c + 1]``
    """

    observed: csr_array
    bounds: Ints

    def __len__(self) -> int:
        return len(self.bounds) - 1


class Batch(NamedTuple):
    """Chains of one length.

    Attributes
    ----------
    nodes : float64 (n, length, states), log-potential of each state at each position
    at : int64 (n, length), the positions in the sequences they are of
    which : int64 (n,), numbers of the chains
    """

    nodes: Floats
    at: Ints
    which: Ints


@dataclass(frozen=True)
class Structure:
    """Which states there are, which may follow which, and which share features.

    Attributes
    ----------
    edges : bool (states, states), whether the state of the column may follow that of the row
    starts : bool (states,), whether a chain may start in a state
    groups : bool (groups, states), which states share the features of each group. The identity:
        every state has features of its own only. With a binary hierarchy over the states the
        weight of a feature in a state is the sum over all groups the state is in [C 3.1.2]
    """

    edges: Bools
    starts: Bools
    groups: Bools

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.starts)


class ChainCRF:
    """Pr(y|x) proportional to exp W.F(x, y), over the sequences that `structure` allows [C 2].

    State features are what is observed at a position times its state, edge features are pairs of
    states. Weights maximise sum_c weight_c log Pr(labels_c | x_c) - `l2` |W|^2, by L-BFGS. A
    position whose label is known in part only, to be one of several states, counts with all
    sequences that agree with what is known; with all labels known that is the likelihood of
    [C 2], and concave.

    Parameters
    ----------
    structure : states, edges, ties
    l2 : strength of the penalty; 1 / (2 sigma^2) for a Gaussian prior of variance sigma^2
    max_iter : iterations of L-BFGS
    tol : relative change of the objective at which it stops

    Attributes
    ----------
    shared_ : float64 (features, groups), weights of the features in each group of states
    state_ : float64 (features, states), the sum of those over the groups each state is in
    edge_ : float64 (states, states), weights of edges; -inf where there is none
    n_iter_ : iterations taken
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
        """Fit to sequences whose labels are `known`.

        Parameters
        ----------
        known : bool (positions, states), the states that each position may be in: one where its
            label is known
        weight : float64 (n,), how much each chain counts; None: 1 each
        on_iteration : called after each iteration

        Raises
        ------
        ValueError
            The structure does not allow what is known of a chain.
        """
        from scipy.optimize import minimize  # noqa: PLC0415 - slow to import, needed here only

        objective = Objective(self.structure, sequences, known, weight, self.l2)

        iterated: Any = lambda _: on_iteration()  # noqa: E731 - scipy's stubs want a name of it
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
        """Take weights of features in groups, and of edges, as fitted before."""
        self.shared_ = shared
        self.state_ = shared @ self.structure.groups
        self.edge_ = np.where(self.structure.edges, edge, -np.inf)

    def marginals(self, sequences: Sequences) -> Floats:
        """Return Pr(y_i = y | x) of every position, (positions, states)."""
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
        """Give the node potentials of chains, those of one length at a time."""
        return _batches(self.structure, sequences, sequences.observed @ self.state_)


class Objective:
    """The negative of what `ChainCRF` maximises, and its gradient, as functions of all weights.

    Raises
    ------
    ValueError
        The structure does not allow what is known of a chain.
    """

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
        """Return the weights of features in groups, and those of edges."""
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
        of_nodes = np.empty_like(scores)  # expected less agreeing
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
                raise ValueError(f"chain {wrong} has labels that may not follow each other")


def _expected(nodes: Floats, edges: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return log Z, node marginals, and expected edges of weighted chains of one length."""
    alpha, beta = forward(nodes, edges), backward(nodes, edges)
    log_z = log_partition(alpha)
    of_edges = edge_marginals(nodes, edges, alpha, beta, log_z=log_z, weight=weight)
    return log_z, node_marginals(alpha, beta, log_z), of_edges


def _batches(structure: Structure, sequences: Sequences, scores: Floats) -> Iterator[Batch]:
    """Give chains of equal length together, by the scores (positions, states) of what is seen."""
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
