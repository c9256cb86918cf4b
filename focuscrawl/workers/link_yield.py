"""What fetches bring: how many more links to expect of those that wait."""

from __future__ import annotations

import math

from focuscrawl.workers.budget import nearly

_FETCHES = 32  # that the mean is of, the latest counting most


class LinkYield:
    """Counts the links that a page brings which are as good as the one that led to it.

    If each of these brings r others on average, a link that waits stands for
    1 + r + r² + ... = 1 / (1 - r) fetches, the total progeny of a branching process; for any
    number of them if r is 1 or more.

    Attributes
    ----------
    rate : r, of late
    """

    def __init__(self) -> None:
        self.rate = 0.0
        self._score = math.nan  # of the link that led to the page at hand
        self._good = 0

    def begin(self, score: float) -> None:
        """Say that a page is at hand, and what score its URL had."""
        self._score, self._good = score, 0

    def found(self, score: float) -> None:
        """Say that a link begins to wait; it counts if a page is at hand."""
        self._good += score >= nearly(self._score)  # no number compares with NaN

    def end(self) -> None:
        """Say that the page is done with."""
        self.rate += (self._good - self.rate) / _FETCHES
        self._score = math.nan

    def stands_for(self, most: int) -> int:
        """Return how many fetches a link that waits stands for, `most` at most."""
        return most if most * (1.0 - self.rate) <= 1.0 else round(1.0 / (1.0 - self.rate))
