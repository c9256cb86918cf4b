"""Training of the strategy in a background thread of the crawl [A02 section 2.3, methods.md 5]."""

from __future__ import annotations

import json
from collections.abc import Callable
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
    """Trains the strategy in a background thread, and re-scores the frontier with each new model.

    In a replay, a new model takes effect a fixed number of fetches after its training started
    (`Strategy.lag`). The replay waits for the training if necessary. All replays of the same crawl
    have the same results. In a live crawl, a new model takes effect immediately.

    Attributes
    ----------
    listeners : list of callable
        Called with each new model when the model takes effect.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._replay = crawl.web is not None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lesson")
        self._lesson: Future[tuple[ModelUpdate, SortedQueues]] | None = None
        self._started_at = 0
        self.listeners: list[Callable[[ModelUpdate], object]] = []

    def reset(self) -> None:
        """Discard a training in progress, and load the last stored model into the strategy."""
        self._lesson = None
        strategy, model = self._crawl.strategy, History(self._crawl.store).last_model()
        self._learned_at = 0  # number of fetches when the last model took effect
        if model is not None:
            started, state = model
            adopted = strategy.load(state)
            self._learned_at = started if adopted is None else adopted
        self._scores = np.full(len(self._crawl.urls), np.nan)

    def restore(self, fetch: RestoredFetch) -> None:
        """Collect scores assigned since the last stored model; restart an interrupted training."""
        seq = fetch.stored.seq
        if seq > self._learned_at:
            self._scores[fetch.urls] = fetch.scores
        if seq == self._learned_at and fetch.last_of_seq:
            urls, scores = self._crawl.strategy.rescore()
            self._scores[urls] = scores
        elif seq <= self._learned_at or fetch.stored.is_revisit:
            return
        self._start_if_due()

    def on_restored(self) -> None:
        """Re-score the frontier with the scores that the resumed strategy returns."""
        scored = np.flatnonzero(~np.isnan(self._scores))
        self._crawl.frontier.rescore(scored, self._scores[scored])
        del self._scores
        self._start_if_due()

    def on_recorded(self, visit: PageVisit) -> None:
        """Start a training of the strategy if one is due and none is running."""
        self._start_if_due()

    def wait(self, now: float) -> float | None:
        """Make a replay wait for a running training when the new model must take effect."""
        is_overdue = self._lesson is not None and self._replay and self._is_due()
        return POLL_INTERVAL if is_overdue else None

    def poll(self, now: float) -> bool:
        """Re-score the frontier when a training has finished."""
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
        for listener in self.listeners:
            listener(lesson)
        return False

    def close(self) -> None:
        """Wait for a running training, discard its model, and store the scores of queued URLs."""
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
    """Return a trained model as a row for the store (database)."""
    return ModelRow(
        version=lesson.version,
        trained_at_seq=lesson.trained_at_seq,
        instances=lesson.instances,
        metrics=json.dumps(dict(lesson.metrics)),
        state=lesson.state,
    )
