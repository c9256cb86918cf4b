"""Rewards of states: how near each is to the goal, from training paths [C 3.2, eqs 3-5]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.paths import chain_recursions as chains

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.paths.crf import ChainCRF, Sequences


def rewards(
    crf: ChainCRF, sequences: Sequences, goal: int, *, gamma: float
) -> NDArray[np.float64]:
    """Return the reward of each state, float64 (states,), in [0, 1].

    The value of a state at a position of a path is the discounted probability that the path comes
    to a goal from there:

        V_i(y) = gamma sum_y' Pr(y_i+1 = y' | y_i = y, x) V_i+1(y'),    V_i(goal) = 1,

    0 behind the end. The reward is its mean over all positions of all training paths, each
    weighed by the probability that the state is there; 0 for a state that never is.

    Notes
    -----
    Equations 3-5 of the paper differ in three ways. Equation 3 has weights in position of
    probabilities, so that paths of strong features drown all others in the mean. The discount
    is by the position from the end (eq. 4); with goals amid a path, as here, it has to be by the
    way to the next goal. The mean of equation 5 is over all positions, those included where the
    state cannot be: a state one click from the goal is there at one position of each path, and
    its reward would be divided by the length of the paths.

    Parameters
    ----------
    sequences : the training paths
    goal : the page state of the goal
    gamma : discount for each position, page or link, on the way to the goal, in (0, 1]
    """
    total, mass = np.zeros(crf.structure.states), np.zeros(crf.structure.states)
    for nodes, _, _ in crf.nodes(sequences):
        alpha, beta = chains.forward(nodes, crf.edge_), chains.backward(nodes, crf.edge_)
        occurs = chains.node_marginals(alpha, beta, chains.log_partition(alpha))
        value = np.zeros_like(occurs[:, 0])
        value[:, goal] = 1.0
        for i in range(nodes.shape[1] - 2, -1, -1):
            onward = (nodes[:, i + 1] + beta[:, i + 1])[:, None, :] + crf.edge_
            dead = beta[:, i] == -np.inf  # no way on from such a state
            step = np.exp(onward - np.where(dead, 0.0, beta[:, i])[:, :, None])
            value = gamma * np.einsum("nst,nt->ns", step, value)
            value[:, goal] = 1.0
            total += (occurs[:, i] * value).sum(axis=0)
            mass += occurs[:, i].sum(axis=0)
    mean: NDArray[np.float64] = np.divide(total, mass, out=np.zeros_like(total), where=mass > 1e-9)
    return mean


def printed_rewards(
    crf: ChainCRF, sequences: Sequences, goal: int, *, gamma: float, pages_only: bool = False
) -> NDArray[np.float64]:
    """Return the reward of each state by equations 3 to 5 as the paper prints them.

    R_i(y) = sum_y' exp(W f(y', y, x, i + 1)) R_i+1(y'), 1 for a goal at the end n of the path and
    0 for all else; the mean of R_n-k over k = 1 ... n - 1, weighed by gamma^k; and the mean of
    that over all paths. Scaled so that the largest is 1, which the order of links does not see.

    Parameters
    ----------
    sequences, goal, gamma : as for `rewards`
    pages_only : whether the positions of the paper's sequences are pages, with links as
        transitions; k is then counted in pages, and from 0: the goal is a state at n only, and
        would be worth nothing

    Notes
    -----
    The sum of equation 4 runs to k = n as printed, to R_0; equation 3 ends at R_1.
    """
    total = np.zeros(crf.structure.states)
    for nodes, _, _ in crf.nodes(sequences):
        length = nodes.shape[1]
        ahead = np.zeros_like(nodes[:, 0])
        ahead[:, goal] = 1.0
        behind = np.arange(length)
        weights = gamma**behind
        weights[0] = 0.0
        if pages_only:
            weights = np.where(behind % 2 == 0, gamma ** (behind / 2), 0.0)
        weights /= weights.sum() if length > 1 else 1.0
        total += weights[0] * ahead.sum(axis=0)
        for k in range(1, length):
            ahead = (np.exp(nodes[:, length - k]) * ahead) @ np.exp(crf.edge_).T
            total += weights[k] * ahead.sum(axis=0)
    return total / total.max() if total.max() > 0.0 else total
