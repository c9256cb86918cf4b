"""Forward, backward and Viterbi recursions over many chains at once, in log space.

All functions take `nodes`, float64 (n, length, states): the log-potential of each state at each
position of n chains of one length, ``-inf`` where a state is impossible, and `edges`, float64
(states, states): the log-potential of going from a state (row) to a state (column).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST = 1e-250  # smaller products have lost digits, or all
_MOST = 600.0  # exp of more is near the end of float64


def forward(nodes: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log alpha (n, length, states): all ways to a state at a position (eq. 6)."""
    alpha = nodes.copy()
    for i in range(1, nodes.shape[1]):
        alpha[:, i] += log_product(alpha[:, i - 1], edges)
    return alpha


def backward(nodes: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log beta (n, length, states): all ways on from a state, 0 at the last position."""
    beta = np.zeros_like(nodes)
    for i in range(nodes.shape[1] - 2, -1, -1):
        beta[:, i] = log_product(nodes[:, i + 1] + beta[:, i + 1], edges.T)
    return beta


def log_partition(alpha: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log Z (n,) of chains; -inf where no sequence of states is possible."""
    return _log_sum(alpha[:, -1])


def node_marginals(
    alpha: NDArray[np.float64], beta: NDArray[np.float64], log_z: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Pr(y_i = y | x), (n, length, states)."""
    marginals: NDArray[np.float64] = np.exp(alpha + beta - log_z[:, None, None])
    return marginals


def edge_marginals(
    nodes: NDArray[np.float64],
    edges: NDArray[np.float64],
    alpha: NDArray[np.float64],
    beta: NDArray[np.float64],
    *,
    log_z: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> NDArray[np.float64]:
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


def viterbi(nodes: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
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


def log_product(left: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
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
        logs: NDArray[np.float64] = np.log(product) + top + edge_top
    lost = ((product < _LEAST) & connected).any(axis=1)
    if lost.any():
        logs[lost] = _log_sum(left[lost][:, :, None] + edges)
    return logs


def _log_sum(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import logsumexp  # noqa: PLC0415 - slow to import, few crawls need it

    total: NDArray[np.float64] = logsumexp(logs, axis=1)
    return total
