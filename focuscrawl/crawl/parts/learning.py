"""Lessons of a strategy that learns, off the event loop."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from focuscrawl.store import ModelRow

if TYPE_CHECKING:
    from typing import Self

    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.frontier import Arrangement, Frontier
    from focuscrawl.strategies import Lesson, Strategy


class LessonPlan(Protocol):
    """When lessons begin, and when they take effect; `Lessons` are those of a lone crawl."""

    @property
    def model_version(self) -> int:
        """Version of the model that scores links."""
        ...

    def waited_for(self, fetched: int) -> bool:
        """Tell whether nothing may be fetched before the lesson under way is adopted."""
        ...

    def begin_if_due(self, fetched: int) -> None:
        """Begin a lesson if one is due and none is under way."""
        ...

    def adopt(self, fetched: int) -> ModelRow | None:
        """Re-order the frontier if there is a lesson to adopt; return what is to be recorded."""
        ...

    def close(self, urls: UrlTable) -> None:
        """Wait for a lesson under way, forget it, and note the scores the frontier ends with."""
        ...


class Lessons:
    """Has one lesson learned at a time, in a thread of its own, and the frontier sorted by it.

    Parameters
    ----------
    replay : time is counted in fetches: a lesson takes effect a fixed number of fetches after it
        began, the learner's `lag`, and is waited for if need be. So it is the same every time.
        Else it does as soon as it can: the live Web is slower than any lesson.
    """

    def __init__(self, learner: Strategy, frontier: Frontier, *, replay: bool) -> None:
        self._learner = learner
        self._frontier = frontier
        self._replay = replay
        self._lag = learner.lag
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lesson")
        self._lesson: Future[tuple[Lesson, Arrangement]] | None = None
        self._begun_at = 0

    @classmethod
    def of(cls, strategy: Strategy, frontier: Frontier, *, replay: bool) -> Self | None:
        """Return the lessons of a strategy; None for one that does not learn."""
        return cls(strategy, frontier, replay=replay) if strategy.learns else None

    @property
    def model_version(self) -> int:
        """Version of the model that scores links now."""
        return self._learner.model_version

    def waited_for(self, fetched: int) -> bool:
        """Tell whether nothing may be fetched before the lesson under way is adopted.

        Parameters
        ----------
        fetched : fetches so far
        """
        return self._lesson is not None and self._replay and fetched >= self._begun_at + self._lag

    def begin_if_due(self, fetched: int) -> None:
        """Begin a lesson if one is due and none is under way."""
        if self._lesson is None and self._learner.lesson_due():
            self._begun_at = fetched
            self._lesson = self._thread.submit(self._learn)

    def adopt(self, fetched: int) -> ModelRow | None:
        """Re-order the whole frontier by a lesson that has been learned; return its record.

        Returns
        -------
        None if there is none to adopt now

        Raises
        ------
        Exception
            Whatever stopped the lesson; another one can begin.
        """
        if self._lesson is None or not self._lesson.done():
            return None
        if self._replay and not self.waited_for(fetched):
            return None
        done, self._lesson = self._lesson, None
        lesson, arrangement = done.result()
        found_since = self._learner.adopt(lesson)
        self._frontier.adopt(arrangement)
        self._frontier.update(*found_since)
        return ModelRow(
            version=lesson.version,
            trained_at_seq=lesson.trained_at_seq,
            instances=lesson.instances,
            metrics=json.dumps(dict(lesson.metrics)),
            state=lesson.state,
        )

    def close(self, urls: UrlTable) -> None:
        """Wait for a lesson under way, forget it, and note the scores the frontier ends with."""
        self._thread.shutdown()
        self._lesson = None
        urls.take_scores(self._frontier)

    def _learn(self) -> tuple[Lesson, Arrangement]:
        lesson = self._learner.learn()
        return lesson, self._frontier.arrange(lesson.urls, lesson.scores)
