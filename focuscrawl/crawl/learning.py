"""Training of a strategy during the crawl, off the event loop [A02 section 2.3, methods 5]."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.crawl.part import POLL_INTERVAL, Part
from focuscrawl.store import ModelRow, VisitRecord
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit
    from focuscrawl.frontier import SortedQueues
    from focuscrawl.strategies import ModelUpdate


class Learning(Part):
    """Runs one lesson at a time in a thread of its own, and re-orders the frontier by it.

    In a replay time is counted in fetches: a lesson takes effect a fixed number of fetches after
    it started, the strategy's `lag`, and the crawl waits for it if need be. So it is the same
    every time. In a live crawl it takes effect as soon as it is learned.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._replay = crawl.web is not None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lesson")
        self._lesson: Future[tuple[ModelUpdate, SortedQueues]] | None = None
        self._started_at = 0

    def reset(self) -> None:
        """Forget the lesson under way; give the strategy the last model in the store."""
        self._lesson = None
        strategy, model = self._crawl.strategy, History(self._crawl.store).last_model()
        self._learned_at = 0  # fetches when the last lesson was adopted
        if model is not None:
            started, state = model
            adopted = strategy.load(state)
            self._learned_at = started if adopted is None else adopted
        self._scores = np.full(len(self._crawl.urls), np.nan)

    def restore(self, fetch: RestoredFetch) -> None:
        """Collect the scores since the last lesson was adopted, and start the lesson after it."""
        seq = fetch.stored.seq
        if seq > self._learned_at:
            self._scores[fetch.urls] = fetch.scores
        if seq == self._learned_at and fetch.last_of_seq:
            urls, scores = self._crawl.strategy.rescore()
            self._scores[urls] = scores
        elif seq <= self._learned_at or fetch.stored.again:
            return
        self._start_if_due()  # one was under way if it had started when this page was visited

    def on_restored(self) -> None:
        """Sort the frontier by the scores that the strategy has restored."""
        scored = np.flatnonzero(~np.isnan(self._scores))
        self._crawl.frontier.rescore(scored, self._scores[scored])
        del self._scores
        self._start_if_due()

    def on_recorded(self, visit: PageVisit) -> None:
        """Start a lesson if one is due and none is under way."""
        self._start_if_due()

    def wait(self, now: float) -> float | None:
        """Have a replay wait until the lesson under way is adopted, when that is due."""
        return (
            POLL_INTERVAL if self._lesson is not None and self._replay and self._is_due() else None
        )

    def poll(self, now: float) -> bool:
        """Re-order the whole frontier by a lesson that was learned."""
        if self._lesson is None or not self._lesson.done():
            return False
        if self._replay and not self._is_due():
            return False
        done, self._lesson = self._lesson, None
        lesson, arrangement = done.result()
        found_since = self._crawl.strategy.adopt(lesson)
        self._crawl.frontier.replace_queues(arrangement)
        self._crawl.frontier.update(*found_since)
        self._crawl.put(VisitRecord(model=model_row(lesson)))
        return False

    def close(self) -> None:
        """Wait for a lesson under way, drop it, and store the last scores of the frontier."""
        self._thread.shutdown()
        self._lesson = None
        self._crawl.urls.copy_scores(self._crawl.frontier)

    def _is_due(self) -> bool:
        return self._crawl.fetched >= self._started_at + self._crawl.strategy.lag

    def _start_if_due(self) -> None:
        if self._lesson is None and self._crawl.strategy.is_training_due():
            self._started_at = self._crawl.fetched
            self._lesson = self._thread.submit(self._learn)

    def _learn(self) -> tuple[ModelUpdate, SortedQueues]:
        lesson = self._crawl.strategy.learn()
        return lesson, self._crawl.frontier.sort_queues(lesson.urls, lesson.scores)


def model_row(lesson: ModelUpdate) -> ModelRow:
    """Return what the store keeps of a lesson."""
    return ModelRow(
        version=lesson.version,
        trained_at_seq=lesson.trained_at_seq,
        instances=lesson.instances,
        metrics=json.dumps(dict(lesson.metrics)),
        state=lesson.state,
    )
