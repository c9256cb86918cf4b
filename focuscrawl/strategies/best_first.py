"""Best-first, the soft focus of [F99 section 3.1] and the baseline of [A02 section 2.1]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.strategies.evidence import Maximum
from focuscrawl.strategies.link_strategy import LinkStrategy

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.strategies.messages import JudgedPage, StrategyContext


class BestFirst(LinkStrategy):
    """Priority of v = R(u), the greatest over all known links (u,v) (METHODS 3)."""

    expects_relevance = True

    def __init__(self, context: StrategyContext) -> None:
        self.evidence = Maximum()

    def score_links(self, page: JudgedPage) -> Floats:
        """Score every link with the relevance of its page."""
        return np.full(len(page.links), page.relevance)
