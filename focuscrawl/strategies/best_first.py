"""Best-first, the soft focus of [F99 section 3.1] and the baseline of [A02 section 2.1]."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.strategies.evidence import Maximum
from focuscrawl.strategies.link_strategy import LinkStrategy

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.strategies.messages import Expansion, JudgedPage, StrategyContext

_A_TRY = 2.0  # taken off the score for each: more than any two R differ by


class BestFirst(LinkStrategy):
    """Priority of v = R(u), the greatest over all known links (u,v) (METHODS 3).

    Parameters
    ----------
    tries : order URLs by (tries, R) [F99 section 3.3]: what was asked for in vain, and is to be
        asked for again, comes behind all that was asked for less often. A resumed crawl counts
        from 0
    """

    expects_relevance = True

    def __init__(self, context: StrategyContext, *, tries: bool = False) -> None:
        if not isinstance(tries, bool):
            raise UserError(f"best-first: tries must be true or false, not {tries!r}")
        self.evidence = Maximum()
        self._by_tries = tries
        self._tries = Counter[int]()  # of URLs that were asked for in vain

    def score_links(self, page: JudgedPage) -> Floats:
        """Score every link with the relevance of its page."""
        return np.full(len(page.links), page.relevance)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links; a URL that was tried stays behind, whatever links to it."""
        expansion = super().expand(page)
        if not self._tries:
            return expansion
        tries = np.array([self._tries[url] for url in expansion.urls.tolist()], np.float64)
        return replace(expansion, scores=expansion.scores - _A_TRY * tries)

    def tried(self, url: int, score: float) -> float:
        """Put a URL that was asked for in vain behind those that were tried less often."""
        if not self._by_tries:
            return score
        self._tries[url] += 1
        return score - _A_TRY
