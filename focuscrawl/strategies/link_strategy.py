"""Strategies that score a link once, when its page comes, and never again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.strategies.protocol import Expansion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.strategies.evidence import Evidence
    from focuscrawl.strategies.protocol import JudgedPage, RecalledPage, StrategyContext


class LinkStrategy(ABC):
    """A strategy made of a score for links and an evidence rule for URLs.

    A subclass sets `evidence` and writes `score_links`.
    """

    #: how the scores of several links to one URL become the URL's score
    evidence: Evidence

    @abstractmethod
    def __init__(self, context: StrategyContext) -> None: ...

    @abstractmethod
    def score_links(self, page: JudgedPage) -> NDArray[np.float64]:
        """Return float64 (n,), a score for each of ``page.links``; -inf: do not follow."""

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Learn nothing, unless a subclass does."""
        return

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links, then the URLs by the evidence of all links so far."""
        scores = self.score_links(page)
        return Expansion(scores, *self._weigh(page.targets, scores))

    def recall(self, page: RecalledPage) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Weigh the links of an earlier run again."""
        return self._weigh(page.targets, page.link_scores)

    def parts(self, memo: bytes | None, groups: Sequence[NDArray[np.int64]]) -> list[bytes | None]:
        """Return the memo for each: it is about the page; see `focuscrawl.strategies.sharing`."""
        return [memo] * len(groups)

    def hear(self, url: int, relevance: float) -> None:
        """Learn nothing from other workers' fetches, unless a subclass does."""
        return

    def _weigh(
        self, targets: NDArray[np.int64], scores: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        followed = np.isfinite(scores)
        return self.evidence.add(targets[followed], scores[followed])
