"""States of the path model (CRF) [C section 3.1], and rewards of the states [C section 3.2]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.paths import crf as chains
from focuscrawl.paths.crf import Structure

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.paths.crf import ChainCRF, Sequences


GOAL, FAIL = "goal", "fail"


@dataclass(frozen=True)
class PathStates:
    """Labels of pages, and states of the chain of alternating pages and links [C section 3.1].

    Let K be the number of labels. The state number k < K is the page state of label k. In figure
    1b of [C], each label k also has a link state with the number K+k. In figure 1a of [C], links
    are transitions, and the state number K+K*j+k is a link from a page of label j to a page of
    label k. Only page state j precedes the link state K+K*j+k, and only page state k follows the
    link state. So the features of a link are features of the transition between the labels.

    Attributes
    ----------
    labels : tuple[str, ...]
        `GOAL`, `FAIL`, then milestones or distances to the goal.
    follows : NDArray[np.bool_] of shape (n_labels, n_labels)
        Whether a page with the row's label may link to a page with the column's label.
    groups : NDArray[np.bool_] of shape (n_groups, n_labels)
        Labels that share features.
    distances : bool
        Whether labels from the third on are distances 1, 2, ... to the goal.
    one_state : bool
        Each label has one state, and links are transitions (figure 1a).
    """

    labels: tuple[str, ...]
    follows: Bools
    groups: Bools
    distances: bool
    one_state: bool = False

    @classmethod
    def supervised(cls, milestones: Sequence[str], *, one_state: bool = False) -> PathStates:
        """Return the states of a path model (CRF) for paths in which every page has a label.

        Any page label may follow any other page label. The path model learns how often failure
        pages follow failure pages, and other evidence can outweigh this frequency. If only failure
        pages could follow a failure page, one page that resembles a failure page would make the
        model label all later pages of its path as failure pages.
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
        """Return the states for paths in which only the last page has a label [C section 3.1.2].

        A page of state i is i clicks before the next goal page, for i = 1 ... `farthest`. Pages of
        the state `farthest` may be more than `farthest` clicks before the next goal page. A page
        of state i is followed by a page of state i - 1 or by a failure page. Goal pages and
        failure pages are followed by pages of any state. If `tied` is set, the states form a
        binary tree by distance, and all states below a node of the tree share features. If `tied`
        is not set, each distance has its own features.
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
        """The states and allowed transitions of a chain of alternating pages and links.

        A chain starts with a page that is neither a goal page nor a failure page. A link state
        leads to the page state of the same label.
        """
        n, same = len(self.labels), np.eye(len(self.labels), dtype=np.bool_)
        onward = self.follows
        if self.one_state:
            onward = (same[:, :, None] & self.follows[:, None, :]).reshape(n, n * n)
        arriving = np.tile(same, (onward.shape[1] // n, 1))
        edges = np.zeros((n + len(arriving),) * 2, np.bool_)
        edges[:n, n:], edges[n:, :n] = onward, arriving
        copies = np.eye(1 + onward.shape[1] // n, dtype=np.bool_)  # for pages, then for links
        groups = np.kron(copies, self.groups).astype(np.bool_)
        starts = np.zeros(len(edges), np.bool_)
        starts[2:n] = True
        return Structure(edges, starts, groups)

    def link_states(self, label: int) -> Ints:
        """Return the states of links to pages that have the label with a given index."""
        n = len(self.labels)
        return np.arange(n + label, n + n * n if self.one_state else 2 * n, n)

    def allowed_states(self, labels: Sequence[str | None], ahead: Sequence[int | None]) -> Bools:
        """Return the possible states of each page and link of a path, given known page labels.

        Parameters
        ----------
        labels : Sequence[str or None]
            Labels of the pages; None, or a label without a state, if unknown.
        ahead : Sequence[int or None]
            Clicks from each page to the next goal on any path of the same site; None if unknown.
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
    """Return the reward of each state, float64 (states,), in [0, 1]; state 0 is a goal page.

    The value V of a state at a position of a path is the discounted probability of reaching a goal
    page, by the following formula:

        V_i(y) = gamma sum_y' Pr(y_i+1 = y' | y_i = y, x) V_i+1(y'), V_i(goal) = 1.

    After the end of a path, the value V is 0. The reward of a state is the mean of its value V
    over all positions of the training paths, weighted by the state's probability at each position.
    The reward of a state with probability 0 is 0.

    Parameters
    ----------
    crf : ChainCRF
        Trained path model (CRF).
    sequences : Sequences
        Training paths.
    gamma : float
        Discount in (0, 1] per position, page or link, on the path to the goal.

    Notes
    -----
    Equations 3-5 of the paper differ in three ways. Equation 3 has weights where probabilities
    belong, so paths with strong features dominate the mean. Equation 4 discounts by the distance
    from the end; here goals may occur within a path, so the distance to the next goal counts.
    Equation 5 averages over all positions, even where the state is impossible. A state one click
    from the goal occurs once in each path, and its reward would be divided by the path's length.
    """
    total, mass = np.zeros(crf.structure.states), np.zeros(crf.structure.states)
    for nodes, _, _ in crf.nodes(sequences):
        alpha, beta = chains.forward(nodes, crf.edge_), chains.backward(nodes, crf.edge_)
        occurs = chains.node_marginals(alpha, beta, chains.log_partition(alpha))
        value = np.zeros_like(occurs[:, 0])
        value[:, 0] = 1.0
        for i in range(nodes.shape[1] - 2, -1, -1):
            onward = (nodes[:, i + 1] + beta[:, i + 1])[:, None, :] + crf.edge_
            dead = beta[:, i] == -np.inf  # states without a continuation
            step = np.exp(onward - np.where(dead, 0.0, beta[:, i])[:, :, None])
            value = gamma * np.einsum("nst,nt->ns", step, value)
            value[:, 0] = 1.0
            total += (occurs[:, i] * value).sum(axis=0)
            mass += occurs[:, i].sum(axis=0)
    return np.divide(total, mass, out=np.zeros_like(total), where=mass > 1e-9)


def printed_rewards(
    crf: ChainCRF, sequences: Sequences, *, gamma: float, pages_only: bool = False
) -> Floats:
    """Return the reward of each state by equations 3 to 5 as printed in [C].

    The reward of a state y at a position i is R_i(y) = sum_y' exp(W f(y', y, x, i+1)) R_i+1(y').
    Here, y' is the next state, W are the weights, and f are the features of the path x. At the
    last position n, the reward is 1 for a goal page and 0 for other states. The reward of a state
    is the mean of its rewards at the positions n-k for k = 1 ... n-1, weighted by gamma^k and
    averaged over all paths. Rewards are scaled to a maximum of 1, which does not change the order
    of links by reward. In [C], the sum of equation 4 ends at k = n. The function leaves out k = n,
    because equation 3 does not define R_0.

    If `pages_only` is set, a sequence contains only pages, and links are transitions. The index k
    in equation 4 then starts at 0. If the index k started at 1, the goal state, which occurs only
    at the last position, would get no reward.
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
