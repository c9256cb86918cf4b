"""Strategy that is best-first up to some fetch, the apprentice after it [A02 section 3.7]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.strategies.apprentice import ApprenticeStrategy
from focuscrawl.strategies.evidence import Maximum
from focuscrawl.strategies.messages import Expansion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.strategies.messages import JudgedPage, Lesson, StrategyContext

_PASSES = (
    5  # over what the baseline has brought: as many as when learning from a crawl that is over
)


class TakeoverStrategy(ApprenticeStrategy):
    """Orders the frontier by R(u) while the apprentice looks on, then by what it has learned.

    Parameters
    ----------
    at : fetches of the baseline; after them the apprentice is trained, the whole frontier is
        scored by it, and it learns on as ever

    Attributes
    ----------
    before, after : float64 (n,), scores of the URLs waiting at the switch, by R(u) and by the
        apprentice; None until then
    """

    def __init__(self, context: StrategyContext, *, at: int) -> None:
        super().__init__(context)
        self.lag = 0  # the lesson at the switch is several
        self._at = at
        self._seen = 0
        self._baseline = Maximum()
        self._scores: dict[int, float] = {}
        self.before: NDArray[np.float64] | None = None
        self.after: NDArray[np.float64] | None = None

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Count the fetches, and have the apprentice look on."""
        self._seen += 1
        super().observe(url, relevance, duplicate_of)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score by R(u), later as the apprentice does; it takes note of the links either way."""
        expansion = super().expand(page)
        if self.model_version:
            return expansion
        scores = np.full(len(page.targets), page.relevance)
        urls, best = self._baseline.add(page.targets, scores)
        self._scores.update(zip(urls.tolist(), best.tolist(), strict=True))
        return Expansion(scores, urls, best, memo=expansion.memo)

    def lesson_due(self) -> bool:
        """Tell whether it is time to switch, or a batch is complete after that."""
        return self._seen >= self._at and super().lesson_due()

    def learn(self) -> Lesson:
        """Learn; at the switch until there is not much more to be learned."""
        if self.before is None:
            for _ in range(_PASSES - 1):
                # nobody is scoring meanwhile: a replay waits for lessons
                self._apprentice.adopt(self._apprentice.learn())
            lesson = super().learn()
            self.before = np.array([self._scores.get(url, 0.0) for url in lesson.urls.tolist()])
            self.after = lesson.scores.copy()
            return lesson
        return super().learn()
