"""Strategies that score a link once, when its page comes, and never again."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.strategies.base import Strategy
from focuscrawl.strategies.messages import Expansion

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.strategies.evidence import Evidence
    from focuscrawl.strategies.messages import JudgedPage, RecalledPage, Scores


class LinkStrategy(Strategy):
    """A strategy made of a score for links and an evidence rule for URLs.

    A subclass sets `evidence` and writes `score_links`.
    """

    in_rounds = True
    #: how the scores of several links to one URL become the URL's score
    evidence: Evidence

    @abstractmethod
    def score_links(self, page: JudgedPage) -> Floats:
        """Return float64 (n,), a score for each of ``page.links``; -inf: do not follow."""

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links, then the URLs by the evidence of all links so far."""
        scores = self.score_links(page)
        return Expansion(scores, *self._weigh(page.targets, scores))

    def recall(self, page: RecalledPage) -> Scores:
        """Weigh the links of an earlier run again."""
        return self._weigh(page.targets, page.link_scores)

    def _weigh(self, targets: Ints, scores: Floats) -> Scores:
        followed = np.isfinite(scores)
        return self.evidence.add(targets[followed], scores[followed])
