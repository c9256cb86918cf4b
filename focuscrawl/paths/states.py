"""States of the chain model [C 3.1], and their rewards [C 3.2, eqs 3-5]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.paths import crf as chains
from focuscrawl.paths.crf import Structure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.paths.crf import ChainCRF, Sequences


GOAL, FAIL = "goal", "fail"


@dataclass(frozen=True)
class PathStates:
    """The labels of a path's pages, and the structure of the chain of pages and links [C 3.1].

    State k of K labels is the page state of label k. With a state for each label and each link
    (figure 1b) state K + k is its link state. With one state a label (figure 1a) links are
    transitions: state K + K j + k is that of a link from a page of label j to one of label k. It
    is entered from page state j only and left for page state k only, so that what is observed of
    a link there is a feature of the transition from j to k.

    Attributes
    ----------
    labels : `GOAL` first, `FAIL` second, then milestones or distances to the goal
    follows : bool (K, K), whether a page of the column's label may be linked to from one of
        the row's
    groups : bool (groups, K), labels that share features
    distances : whether labels from the third on are distances 1, 2, ... to the goal
    one_state : whether labels have one state each, and links are transitions (figure 1a)
    """

    labels: tuple[str, ...]
    follows: Bools
    groups: Bools
    distances: bool
    one_state: bool = False

    @classmethod
    def supervised(cls, milestones: Sequence[str], *, one_state: bool = False) -> PathStates:
        """Return states for pages that were labelled.

        Any label may follow any other. That nothing but fails follows a fail is learned, and
        what is learned can be outweighed: were it forbidden, one page on the way that looks like
        a fail would make all behind it fails, whatever they are.
        """
        labels = (GOAL, FAIL, *sorted(set(milestones) - {GOAL, FAIL}))
        n = len(labels)
        free = np.ones((n, n), np.bool_)
        same = np.eye(n, dtype=np.bool_)
        return cls(labels, free, same, distances=False, one_state=one_state)

    @classmethod
    def partially_supervised(
        cls, farthest: int, *, one_state: bool = False, tied: bool = True
    ) -> PathStates:
        """Return states for paths of which only the end is known [C 3.1.2].

        State i is that of pages i clicks before the next goal, i = 1 ... `farthest`, the last
        one also of pages farther away. From i links lead to i - 1 or fail; from a goal to other
        goals and to ways there; from a fail anywhere, as in `supervised`. Features are `tied`
        over a binary hierarchy of the distances, or each distance has its own alone.
        """
        labels = (GOAL, FAIL, *map(str, range(1, farthest + 1)))
        n = len(labels)
        follows = np.zeros((n, n), np.bool_)
        follows[:, 1] = True
        follows[:2] = True
        for distance in range(1, farthest + 1):
            follows[distance + 1, distance if distance > 1 else 0] = True
        follows[n - 1, n - 1] = farthest > 0
        rows = [*np.eye(n, dtype=np.bool_)]
        width = 2
        while tied and width < 2 * farthest:
            for start in range(0, farthest, width):
                row = np.zeros(n, np.bool_)
                row[2 + start : 2 + min(start + width, farthest)] = True
                if row.sum() > 1 and not any((row == other).all() for other in rows):
                    rows.append(row)
            width *= 2
        return cls(labels, follows, np.array(rows), distances=True, one_state=one_state)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def tied(self) -> bool:
        """Whether labels share features."""
        return len(self.groups) > len(self.labels)

    @property
    def structure(self) -> Structure:
        """The chain: pages and links take turns.

        It starts with a page that is neither a goal nor a fail: every site is worth a look.
        A link state leads to the page state of its own label.
        """
        n, same = len(self.labels), np.eye(len(self.labels), dtype=np.bool_)
        onward = self.follows
        if self.one_state:
            onward = (same[:, :, None] & self.follows[:, None, :]).reshape(n, n * n)
        arriving = np.tile(same, (onward.shape[1] // n, 1))
        edges = np.zeros((n + len(arriving),) * 2, np.bool_)
        edges[:n, n:], edges[n:, :n] = onward, arriving
        copies = np.eye(1 + onward.shape[1] // n, dtype=np.bool_)  # of pages, then of links
        groups = np.kron(copies, self.groups).astype(np.bool_)
        starts = np.zeros(len(edges), np.bool_)
        starts[2:n] = True
        return Structure(edges, starts, groups)

    def link_states(self, label: int) -> Ints:
        """Return the states of links to pages of a label, by its number."""
        n = len(self.labels)
        return np.arange(n + label, n + n * n if self.one_state else 2 * n, n)

    def allowed_states(self, labels: Sequence[str | None], ahead: Sequence[int | None]) -> Bools:
        """Return which states the positions of a path may be in, bool (2 n - 1, states).

        Parameters
        ----------
        labels : of the n pages, None where it is not known; one that no state is for is not
        ahead : clicks from each page to the next goal, by this path or by another one of the
            same site; None where no path says
        """
        allowed = np.zeros((len(labels), len(self.labels)), np.bool_)
        number = {label: i for i, label in enumerate(self.labels)}
        farthest = len(self.labels) - 2
        for i, (label, clicks) in enumerate(zip(labels, ahead, strict=True)):
            if label in {GOAL, FAIL} or (not self.distances and label in number):
                allowed[i, number[label]] = True
            elif self.distances and clicks is not None:
                allowed[i, 1 + min(clicks, farthest)] = True
            else:
                allowed[i, 2 if i == 0 else 1 :] = True
        n, k = allowed.shape
        links = allowed[1:]
        if self.one_state:
            links = (allowed[:-1, :, None] & links[:, None, :]).reshape(n - 1, k * k)
        known = np.zeros((2 * n - 1, k + links.shape[1]), np.bool_)
        known[::2, :k] = allowed
        known[1::2, k:] = links
        return known


def rewards(crf: ChainCRF, sequences: Sequences, *, gamma: float) -> Floats:
    """Return the reward of each state, float64 (states,), in [0, 1]; state 0 is the goal.

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
    gamma : discount for each position, page or link, on the way to the goal, in (0, 1]
    """
    total, mass = np.zeros(crf.structure.states), np.zeros(crf.structure.states)
    for nodes, _, _ in crf.nodes(sequences):
        alpha, beta = chains.forward(nodes, crf.edge_), chains.backward(nodes, crf.edge_)
        occurs = chains.node_marginals(alpha, beta, chains.log_partition(alpha))
        value = np.zeros_like(occurs[:, 0])
        value[:, 0] = 1.0
        for i in range(nodes.shape[1] - 2, -1, -1):
            onward = (nodes[:, i + 1] + beta[:, i + 1])[:, None, :] + crf.edge_
            dead = beta[:, i] == -np.inf  # no way on from such a state
            step = np.exp(onward - np.where(dead, 0.0, beta[:, i])[:, :, None])
            value = gamma * np.einsum("nst,nt->ns", step, value)
            value[:, 0] = 1.0
            total += (occurs[:, i] * value).sum(axis=0)
            mass += occurs[:, i].sum(axis=0)
    mean: Floats = np.divide(total, mass, out=np.zeros_like(total), where=mass > 1e-9)
    return mean


def printed_rewards(
    crf: ChainCRF, sequences: Sequences, *, gamma: float, pages_only: bool = False
) -> Floats:
    """Return the reward of each state by equations 3 to 5 as the paper prints them.

    R_i(y) = sum_y' exp(W f(y', y, x, i + 1)) R_i+1(y'), 1 for a goal at the end n of the path and
    0 for all else; the mean of R_n-k over k = 1 ... n - 1, weighed by gamma^k; and the mean of
    that over all paths. Scaled so that the largest is 1, which the order of links does not see.

    Parameters
    ----------
    sequences, gamma : as for `rewards`
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
        ahead[:, 0] = 1.0
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
