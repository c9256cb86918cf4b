"""What fetches bring: how many more links to expect of those that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.workers.budget import nearly

if TYPE_CHECKING:
    from collections.abc import Iterable

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

    def count(self, score: float, found: Iterable[float]) -> None:
        """Take in a page: the score of the link that led to it, and of those that it brought."""
        good = sum(each >= nearly(score) for each in found)
        self.rate += (good - self.rate) / _FETCHES

    def stands_for(self, most: int) -> int:
        """Return how many fetches a link that waits stands for, `most` at most."""
        return most if most * (1.0 - self.rate) <= 1.0 else round(1.0 / (1.0 - self.rate))
