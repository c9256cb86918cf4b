"""Values of links by Q-learning: a linear model, replay of experience, double learning."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDRegressor

from focuscrawl.apprentice.link_table import RowStore
from focuscrawl.apprentice.sparse_rows import SparseRows, ranges
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from collections.abc import Sequence

_BITS = 18  # of the features of anchors, and again of those of URLs
_WIDTH = (2 << _BITS) + 1  # last: whether a link stays in its domain
_UNKNOWN = 0.05  # a value before anything was learned


class Link(NamedTuple):
    """What the features of a link are made of."""

    anchor: str
    url: str
    inside: bool  # its domain


class LinkVectors:
    """Vectors of distinct links, by number.

    Anchors are read as their distinct runs of 3 to 5 characters, URLs as those of 4 and 5, each
    as a unit vector of hashed features; one more says whether a link stays in its domain.
    """

    def __init__(self) -> None:
        hashed = {"analyzer": "char", "binary": True, "n_features": 1 << _BITS}
        self._anchors = HashingVectorizer(ngram_range=(3, 5), **hashed)
        self._urls = HashingVectorizer(ngram_range=(4, 5), **hashed)
        self._number: dict[Link, int] = {}
        self._rows = RowStore()
        self._values = GrowingArray(np.float32)

    def numbers(self, links: Sequence[Link]) -> Ints:
        """Return the numbers of links, int64 (n,); those that are new get one."""
        new = list(dict.fromkeys(link for link in links if link not in self._number))
        if new:
            parts = [
                self._anchors.transform([link.anchor for link in new]),
                self._urls.transform([link.url for link in new]),
                sparse.csr_matrix([[float(link.inside)] for link in new]),
            ]
            rows = sparse.hstack(parts, format="csr")
            self._values.extend(rows.data)
            indices = rows.indices.astype(np.int32, copy=False)
            self._rows.extend(SparseRows(indices, rows.indptr.astype(np.int64)))
            self._number.update(zip(new, count(len(self._number)), strict=False))
        return np.array([self._number[link] for link in links], np.int64)

    def matrix(self, numbers: Ints) -> sparse.csr_matrix:
        """Return the vectors of links, (n, `_WIDTH`)."""
        rows = self._rows.rows(len(self._rows))
        taken = rows.take(numbers)
        at = ranges(rows.indptr[numbers], taken.lengths)
        values = self._values.data[at].astype(np.float64)
        return sparse.csr_matrix(
            (values, taken.indices, taken.indptr), shape=(len(numbers), _WIDTH)
        )


class Values(NamedTuple):
    """A linear model of the value of links."""

    weights: Floats | None
    intercept: float

    def of(self, links: sparse.csr_matrix) -> Floats:
        """Return float64 (n,)."""
        if self.weights is None:
            return np.full(links.shape[0], _UNKNOWN)
        return np.round(links @ self.weights + self.intercept, 9)


class Experience(NamedTuple):
    """A link that was followed: its number, the reward, and the links found behind it."""

    link: int
    reward: float
    found: Ints


class ValueLearner:
    """Q-learning with a linear model, replay of experience, and double learning.

    The value of a link that led to a reward r and to links A is to be
    r + gamma target(argmax over A of online). At every step the online model takes one pass of
    stochastic gradient descent over a sample of all experience, the target model becomes
    a copy of it after every `switch` steps.

    Attributes
    ----------
    target : of the last switch
    steps : taken
    """

    def __init__(
        self, vectors: LinkVectors, random_state: int, gamma: float, sample: int, switch: int
    ) -> None:
        self._vectors = vectors
        self._random = np.random.default_rng(random_state)
        self._gamma, self._sample, self._switch = gamma, sample, switch
        self._online = SGDRegressor(
            penalty="l1", learning_rate="constant", eta0=0.1, random_state=random_state
        )
        self._experience: list[Experience] = []
        self.target = Values(None, 0.0)
        self.steps = 0

    def learn(self, experience: Experience) -> bool:
        """Take a step; return whether there is a new target."""
        self.steps += 1
        self._experience.append(experience)
        n = len(self._experience)
        chosen = self._random.choice(n, min(n, self._sample), replace=False)
        sample = [self._experience[i] for i in chosen.tolist()]
        followed = np.array([each.link for each in sample], np.int64)
        goal = np.array([each.reward for each in sample])
        goal += self._gamma * self._next_values([each.found for each in sample])
        self._online.partial_fit(self._vectors.matrix(followed), goal)
        switched = self.steps % self._switch == 0
        if switched:
            self.target = Values(self._online.coef_.copy(), float(self._online.intercept_[0]))
        return switched

    def _next_values(self, found: Sequence[Ints]) -> Floats:
        """Return the target's value of the link that the online model prefers; 0 without links."""
        lengths = np.array([len(links) for links in found])
        values = np.zeros(len(found))
        some = np.flatnonzero(lengths)
        if len(some):
            links = np.concatenate(found)
            distinct, at = np.unique(links, return_inverse=True)
            online = self._online_values().of(self._vectors.matrix(distinct))[at]
            begins = np.cumsum(lengths) - lengths
            best = [begins[i] + online[begins[i] :][: lengths[i]].argmax() for i in some.tolist()]
            values[some] = self.target.of(self._vectors.matrix(links[best]))
        return values

    def _online_values(self) -> Values:
        if not hasattr(self._online, "coef_"):
            return Values(None, 0.0)
        return Values(self._online.coef_, float(self._online.intercept_[0]))
