"""Breadth-first: the unfocused crawler [F99 section 4.3]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.strategies.evidence import First
from focuscrawl.strategies.link_strategy import LinkStrategy

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.strategies.messages import JudgedPage, StrategyContext


class BreadthFirst(LinkStrategy):
    """Fetch URLs in the order they were found: all scores are equal."""

    def __init__(self, context: StrategyContext) -> None:
        self.evidence = First()

    def score_links(self, page: JudgedPage) -> Floats:
        """Give every link the same score."""
        return np.zeros(len(page.links))
