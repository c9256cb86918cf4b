"""A strategy whose scores of URLs are corrected by what earlier crawls have learned of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.strategies.base import Strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from focuscrawl.strategies.messages import (
        Expansion,
        JudgedPage,
        Lesson,
        RecalledPage,
        Scores,
    )

SURE = 0.9  # share of a known URL's score that what is known of it decides


class Names(Protocol):
    """Gives URLs by their numbers."""

    def __getitem__(self, number: int) -> str: ...


class Informed(Strategy):
    """A strategy that learns, with scores corrected of URLs of which something is known.

    score(v) = sure known(v) + (1 - sure) s(v), with s(v) the strategy's own. Links keep the
    scores the strategy gives them.

    Parameters
    ----------
    learner : the strategy
    known : scores of URLs; NaN where nothing is known
    names : of the crawl's URLs
    sure : 1 leaves nothing to the strategy
    """

    learns = True

    def __init__(
        self,
        learner: Strategy,
        known: Callable[[Sequence[str]], Floats],
        names: Names,
        sure: float = SURE,
    ) -> None:
        self._learner = learner
        self._ask = known
        self._names = names
        self._sure = sure
        self._known = GrowingArray(np.float64, fill=np.nan)
        self._asked = GrowingArray(np.bool_, fill=False)
        self.lag = learner.lag
        self.expects_relevance = learner.expects_relevance

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Pass on what came of a fetch."""
        self._learner.observe(url, relevance, duplicate_of)

    def worth(self, url: int, relevance: float) -> float:
        """Return what a page was worth."""
        return self._learner.worth(url, relevance)

    def lesson_due(self) -> bool:
        """Tell whether a lesson is to begin."""
        return self._learner.lesson_due()

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page` and where they lead."""
        self._look_up(page.targets)
        expansion = self._learner.expand(page)
        _, scores = self._corrected((expansion.urls, expansion.scores))
        return replace(expansion, scores=scores)

    def recall(self, page: RecalledPage) -> Scores:
        """Take in the links of an earlier run."""
        self._look_up(page.targets)
        return self._corrected(self._learner.recall(page))

    def learn(self) -> Lesson:
        """Learn from all that was observed."""
        lesson = self._learner.learn()
        _, lesson.scores = self._corrected((lesson.urls, lesson.scores))
        return lesson

    def adopt(self, lesson: Lesson) -> Scores:
        """Score with the lesson's model from now on."""
        self.model_version = lesson.version
        return self._corrected(self._learner.adopt(lesson))

    def load(self, state: bytes) -> int | None:
        """Take up the model of the last lesson."""
        adopted_at = self._learner.load(state)
        self.model_version = self._learner.model_version
        return adopted_at

    def rescore(self) -> Scores:
        """Return the scores of all URLs that have links."""
        return self._corrected(self._learner.rescore())

    def _look_up(self, targets: Ints) -> None:
        """Ask once for each URL what is known of it."""
        size = int(targets.max(initial=-1)) + 1
        self._asked.grow(size)
        self._known.grow(size)
        new = np.unique(targets[~self._asked.data[targets]])
        if len(new):
            self._known.data[new] = self._ask([self._names[i] for i in new.tolist()])
            self._asked.data[new] = True

    def _corrected(self, given: Scores) -> Scores:
        # all URLs with links have been looked up; the array may have grown beyond them since
        urls, scores = given
        known = self._known.data[urls]
        corrected = self._sure * known + (1.0 - self._sure) * scores
        found = np.where(np.isnan(known), scores, corrected)
        return urls, np.round(found, 9).astype(np.float64, copy=False)
