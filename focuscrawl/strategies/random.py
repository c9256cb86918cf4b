"""Random order: the other unfocused crawler (METHODS 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.strategies.evidence import First
from focuscrawl.strategies.link_strategy import LinkStrategy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.strategies.messages import JudgedPage, StrategyContext


class Random(LinkStrategy):
    """Fetch URLs in an order drawn from the seed.

    A URL's score depends on the seed and the URL's number alone, so that a resumed crawl draws
    what an uninterrupted one would have drawn.
    """

    def __init__(self, context: StrategyContext) -> None:
        self._seed = np.uint64(context.random_state % 2**64)
        self.evidence = First()

    def score_links(self, page: JudgedPage) -> Floats:
        """Give every link a score uniform in [0, 1)."""
        return _uniform(page.targets.astype(np.uint64), self._seed)


def _uniform(counters: NDArray[np.uint64], seed: np.uint64) -> Floats:
    """Hash counters to [0, 1): the output function of SplitMix64 (Steele, Lea, Flood 2014)."""
    with np.errstate(over="ignore"):
        x = _mix(_mix(np.full_like(counters, seed)) + counters * np.uint64(0x9E3779B97F4A7C15))
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
