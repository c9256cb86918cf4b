"""Hard focus [F99 section 3.1]: only pages on the topic are expanded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.strategies.evidence import Maximum
from focuscrawl.strategies.link_strategy import LinkStrategy

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.strategies.messages import JudgedPage, StrategyContext


class HardFocus(LinkStrategy):
    """Follow the links of u only if its best leaf, or an ancestor of it, is marked.

    Among the links followed the order is that of best-first. A crawl can stagnate: the frontier
    runs empty when no page on the topic is left to expand.
    """

    expects_relevance = True

    def __init__(self, context: StrategyContext) -> None:
        if not len(context.critic.marked):
            raise UserError(
                "strategy hard-focus needs a critic with classes: use best-first with this one"
            )
        self._marked = context.critic.marked
        self.evidence = Maximum()

    def score_links(self, page: JudgedPage) -> Floats:
        """Score every link with the relevance of its page, or refuse them all."""
        # `marked` holds the leaves below every marked topic, so ancestors are covered
        assert page.probabilities is not None
        on_topic = self._marked[np.argmax(page.probabilities)]
        return np.full(len(page.links), page.relevance if on_topic else -np.inf)
