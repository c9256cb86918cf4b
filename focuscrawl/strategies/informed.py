"""A strategy beside what is known: URLs of earlier crawls have the scores these have earned."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from focuscrawl.foundation.arrays import GrowingArray

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from focuscrawl.strategies.protocol import (
        Expansion,
        JudgedPage,
        LearningStrategy,
        Lesson,
        RecalledPage,
    )

    Scores = tuple[NDArray[np.int64], NDArray[np.float64]]

SURE = 0.9  # share of a known URL's score that what is known of it decides


class Names(Protocol):
    """Gives URLs by their numbers."""

    def __getitem__(self, number: int) -> str: ...


class Informed:
    """A `LearningStrategy` whose scores of URLs that are known are corrected by what is known.

    score(v) = sure known(v) + (1 - sure) s(v), with s(v) the strategy's own. Links keep the
    scores the strategy gives them.

    Parameters
    ----------
    learner : the strategy
    known : scores of URLs; NaN where nothing is known
    names : of the crawl's URLs
    sure : 1 leaves nothing to the strategy
    """

    def __init__(
        self,
        learner: LearningStrategy,
        known: Callable[[Sequence[str]], NDArray[np.float64]],
        names: Names,
        sure: float = SURE,
    ) -> None:
        self._learner = learner
        self._ask = known
        self._names = names
        self._sure = sure
        self._known = GrowingArray(np.float64, fill=np.nan)
        self._asked = GrowingArray(np.bool_, fill=False)
        self.lag: int = getattr(learner, "lag", 0)
        self.learns = True
        self.worth = lambda url, relevance: relevance
        self.needs_depths: bool = getattr(learner, "needs_depths", False)

    @property
    def model_version(self) -> int:
        """Version of the model that scores links now."""
        return self._learner.model_version

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Pass on what came of a fetch."""
        self._learner.observe(url, relevance, duplicate_of)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page` and where they lead."""
        self._look_up(page.targets)
        expansion = self._learner.expand(page)
        return replace(expansion, scores=self._corrected(expansion.urls, expansion.scores))

    def recall(self, page: RecalledPage) -> Scores:
        """Take in the links of an earlier run."""
        self._look_up(page.targets)
        urls, scores = self._learner.recall(page)
        return urls, self._corrected(urls, scores)

    def lesson_due(self) -> bool:
        """Tell whether a lesson is to begin."""
        return self._learner.lesson_due()

    def learn(self) -> Lesson:
        """Learn; see `LearningStrategy.learn`."""
        lesson = self._learner.learn()
        lesson.scores = self._corrected(lesson.urls, lesson.scores)
        return lesson

    def adopt(self, lesson: Lesson) -> Scores:
        """Score with the lesson's model from now on; see `LearningStrategy.adopt`."""
        urls, scores = self._learner.adopt(lesson)
        return urls, self._corrected(urls, scores)

    def load(self, state: bytes) -> int | None:
        """Take up the model of the last lesson; see `LearningStrategy.load`."""
        return self._learner.load(state)

    def rescore(self) -> Scores:
        """Return the scores of all URLs that have links; see `LearningStrategy.rescore`."""
        urls, scores = self._learner.rescore()
        return urls, self._corrected(urls, scores)

    def _look_up(self, targets: NDArray[np.int64]) -> None:
        """Ask once for each URL what is known of it."""
        size = int(targets.max(initial=-1)) + 1
        self._asked.grow(size)
        self._known.grow(size)
        new = np.unique(targets[~self._asked.data[targets]])
        if len(new):
            self._known.data[new] = self._ask([self._names[i] for i in new.tolist()])
            self._asked.data[new] = True

    def _corrected(
        self, urls: NDArray[np.int64], scores: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        # all URLs with links have been looked up; the array may have grown beyond them since
        known = self._known.data[urls]
        corrected = self._sure * known + (1.0 - self._sure) * scores
        return np.round(np.where(np.isnan(known), scores, corrected), 9).astype(np.float64)
