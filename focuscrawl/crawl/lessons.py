"""Lessons of a strategy that learns, off the event loop."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from focuscrawl.frontier import Arrangement, Frontier
    from focuscrawl.strategies import Learner, Lesson


class Lessons:
    """Has one lesson learned at a time, in a thread of its own, and the frontier sorted by it."""

    def __init__(self, learner: Learner, frontier: Frontier) -> None:
        self._learner = learner
        self._frontier = frontier
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lesson")
        self._lesson: Future[tuple[Lesson, Arrangement]] | None = None

    @property
    def under_way(self) -> bool:
        """True from the beginning of a lesson until `finished` has returned it."""
        return self._lesson is not None

    def begin_if_due(self) -> None:
        """Begin a lesson if one is due and none is under way."""
        if self._lesson is None and self._learner.lesson_due():
            self._lesson = self._thread.submit(self._learn)

    def finished(self) -> tuple[Lesson, Arrangement] | None:
        """Return a lesson learned since the last call, and the order of the frontier by it.

        Raises
        ------
        Exception
            Whatever stopped the lesson; another one can begin.
        """
        if self._lesson is None or not self._lesson.done():
            return None
        done, self._lesson = self._lesson, None
        return done.result()

    def close(self) -> None:
        """Wait for a lesson under way, and forget it."""
        self._thread.shutdown()
        self._lesson = None

    def _learn(self) -> tuple[Lesson, Arrangement]:
        lesson = self._learner.learn()
        return lesson, self._frontier.arrange(lesson.urls, lesson.scores)
