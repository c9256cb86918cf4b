"""Graded labels: the log-odds of R(u) on [0, 1], where R itself is nearly always 0 or 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats

_SUREST = 36.0  # log-odds; nearer to 0 or 1 a float64 cannot say much
_LEAST = float(np.log(99.0))  # a scale on which 0.99 is 1
_SPREAD = 1.25  # times the mean, the log-odds that 1 stands for


class GradedLabels:
    """Relevance by its log-odds, from 0 to 1 as far as this critic goes.

    Naive Bayes takes every word as fresh evidence, so R is close to 0 or 1 on nearly every page
    (METHODS 2): as a label it does not tell a page at the heart of a topic from one at its edge.
    The log-odds do, and so there is something to learn also where hardly a fetch goes wrong:
    links to the edge lead farther out. With l = log R / (1 - R), the grade is linear in it::

        g(R) = (1 + l / s) / 2, in [0, 1];  g(0) = 0, g(1/2) = 1/2

    and s is 5/4 of the mean |l| of what was judged so far, between log 99 and the most that a
    float64 can tell from 1: a critic whose probabilities mean what they say is graded on a scale
    of its own. R = 0 is what has no page at all, and does not count towards s.
    """

    def __init__(self) -> None:
        self._total = 0.0
        self._n = 0

    @property
    def scale(self) -> float:
        """The log-odds s from which on the grade is 1."""
        mean = self._total / self._n if self._n else 0.0
        return min(max(_SPREAD * mean, _LEAST), _SUREST)

    def observe(self, relevance: float) -> None:
        """Take in the relevance of one fetch."""
        if relevance > 0.0:
            self._total += float(np.abs(_log_odds(np.array([relevance]))[0]))
            self._n += 1

    def of(self, relevance: Floats) -> Floats:
        """Return the grades of R (n,) on the present scale."""
        half = np.clip(_log_odds(relevance) / (2.0 * self.scale), -0.5, 0.5)
        return np.where(relevance > 0.0, 0.5 + half, 0.0)


def _log_odds(relevance: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        odds = np.log(relevance) - np.log1p(-relevance)
    clipped: Floats = np.clip(odds, -_SUREST, _SUREST)
    return clipped
