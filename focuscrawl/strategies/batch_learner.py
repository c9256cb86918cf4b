"""Strategies that learn from the whole crawl so far, batch by batch."""

from __future__ import annotations

from abc import abstractmethod
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import numpy as np

from focuscrawl.foundation.arrays import GrowingArray
from focuscrawl.strategies.base import Strategy
from focuscrawl.strategies.exchange import Expansion, Lesson
from focuscrawl.strategies.link_history import LinkHistory, PathFacts
from focuscrawl.strategies.option_checks import check_count, check_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.strategies.exchange import JudgedPage, RecalledPage, Scores
    from focuscrawl.strategies.link_history import Past


def check_batches(strategy: str, batch: object, growth: object) -> None:
    """Raise `UserError` unless these options of a strategy are what `BatchLearner` takes."""
    check_count(f"{strategy}: batch", batch, 1)
    check_number(f"{strategy}: growth", growth, 0.0)


class FittedModel(Protocol):
    """What a lesson makes of the crawl so far, by `BatchLearner.fit`."""

    @property
    def instances(self) -> int:
        """How many the lesson learned from."""
        ...

    @property
    def metrics(self) -> dict[str, float]:
        """What the lesson found; goes to the store."""
        ...

    def evidence(self, past: Past, links: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what links, by their ascending numbers, say of their targets: (n, columns).

        Not called without links.
        """
        ...

    def scores(
        self, urls: NDArray[np.int64], evidence: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the scores of URLs by the evidence of all their links, (n, columns)."""
        ...


class _Taught(NamedTuple):
    model: FittedModel
    links: int
    standing: _Standing


class BatchLearner(Strategy):
    """A strategy that keeps what the crawl has shown and fits a model to it in batches.

    A model is a function of the crawl so far and of nothing else, so what the store has to keep
    of a lesson is when it was: a resumed crawl learns the last lesson again.

    Parameters
    ----------
    batch, growth : fetches from one lesson to the next, at least and as a share of all fetches,
        so that lessons cost each fetch the same at any age of the crawl
    """

    learns = True
    #: how the evidence of several links into one URL is joined: `numpy.maximum` or `numpy.add`
    join: ClassVar[np.ufunc] = np.maximum
    columns: ClassVar[int] = 1

    def __init__(self, *, batch: int = 25, growth: float = 0.02) -> None:
        self._batch = batch
        self._growth = growth
        self._crawled = LinkHistory()
        self._model: FittedModel = self.unlearned()
        self._standing = _Standing(self.join, self.columns)
        self._due = 0
        self._subject: tuple[Past, int] | None = None  # of the lesson that is due
        self._lesson_at: tuple[int, int] | None = None  # no scores until all that is back
        self._lock = Lock()

    @abstractmethod
    def read(self, page: JudgedPage) -> PathFacts:
        """Take from a page what will be learned from."""

    @abstractmethod
    def unlearned(self) -> FittedModel:
        """Return the model that scores links until there was something to learn from."""

    @abstractmethod
    def fit(self, past: Past) -> FittedModel:
        """Learn from the crawl so far; may run beside all other methods."""

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Take note of what came of a fetch; a duplicate is a fetch wasted like any other."""
        with self._lock:
            self._crawled.observe(url, relevance)
            self._due += 1
            self._reach_lesson()

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, and the URLs they lead to, by all links into them."""
        facts = self.read(page)
        link_scores, urls, scores = self._take_in(page.url, facts)
        return Expansion(link_scores, urls, scores, memo=facts.to_bytes())

    def recall(self, page: RecalledPage) -> Scores:
        """Take in the links of an earlier run."""
        assert page.memo is not None
        _, urls, scores = self._take_in(page.url, PathFacts.from_bytes(page.memo))
        return urls, scores

    def lesson_due(self) -> bool:
        """Tell whether a batch is complete and anything relevant was seen yet."""
        batch = max(self._batch, int(self._growth * self._crawled.observed))
        if self._due < batch or not self._crawled.relevant:
            return False
        self._begin_lesson()
        return True

    def _begin_lesson(self) -> None:
        with self._lock:
            self._due = 0
            self._subject = self._crawled.past(), self._crawled.observed

    def learn(self) -> Lesson:
        """Learn from all that was observed."""
        if self._subject is None:
            self._begin_lesson()
        assert self._subject is not None
        (past, observed), self._subject = self._subject, None
        model = self.fit(past)
        standing = self._stand(model, past)
        waiting = past.waiting
        at = np.array([self.model_version + 1, observed, len(past.pages)], "<i8")
        return Lesson(
            version=self.model_version + 1,
            trained_at_seq=observed,
            instances=model.instances,
            metrics=model.metrics,
            state=at.tobytes(),
            urls=waiting,
            scores=_scores(model, standing, waiting),
            model=_Taught(model, len(past.target), standing),
        )

    def adopt(self, lesson: Lesson) -> Scores:
        """Score with the lesson's model from now on."""
        with self._lock:
            taught: _Taught = lesson.model
            self._model, self._standing = taught.model, taught.standing
            self.model_version = lesson.version
            past = self._crawled.now()
            since = np.arange(taught.links, len(past.target))
            self._standing.add(self._model, past, since)
            urls = np.unique(past.target[since])
            return urls, _scores(self._model, self._standing, urls)

    def load(self, state: bytes) -> None:
        """Remember when the last lesson of an earlier run was."""
        self.model_version, observed, pages = np.frombuffer(state, "<i8").tolist()
        self._lesson_at = observed, pages

    def rescore(self) -> Scores:
        """Return the scores of all URLs that have links and were not fetched."""
        with self._lock:
            urls = self._crawled.now().waiting
            return urls, _scores(self._model, self._standing, urls)

    def _take_in(
        self, url: int, facts: PathFacts
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the scores of links, the distinct URLs they lead to, and the scores of these."""
        with self._lock:
            start = self._crawled.add(url, facts)
            urls = np.unique(facts.targets)
            if self._lesson_at is not None or not len(urls):
                self._reach_lesson()
                return np.zeros(len(facts.targets)), urls, np.zeros(len(urls))
            past = self._crawled.now()
            evidence = self._standing.add(self._model, past, np.arange(start, len(past.target)))
            of_links = np.round(self._model.scores(facts.targets, evidence), 9)
            return of_links, urls, _scores(self._model, self._standing, urls)

    def _reach_lesson(self) -> None:
        """Once all that the last lesson knew is back, learn it again."""
        if self._lesson_at is None:
            return
        observed, pages = self._lesson_at
        if self._crawled.observed >= observed and self._crawled.pages >= pages:
            self._lesson_at = None
            self._due = 0
            past = self._crawled.past()
            self._model = self.fit(past)
            self._standing = self._stand(self._model, past)

    def _stand(self, model: FittedModel, past: Past) -> _Standing:
        standing = _Standing(self.join, self.columns)
        # what was fetched never waits again
        standing.add(model, past, np.flatnonzero(np.isnan(past.relevance[past.target])))
        return standing


class _Standing:
    """The joined evidence of all links into each URL."""

    def __init__(self, join: np.ufunc, columns: int) -> None:
        self._join = join
        nothing = -np.inf if join is np.maximum else 0.0
        self._joined = [GrowingArray(np.float64, fill=nothing) for _ in range(columns)]

    def add(self, model: FittedModel, past: Past, links: NDArray[np.int64]) -> NDArray[np.float64]:
        """Take in the evidence of links; return it, float64 (n, columns)."""
        if not len(links):
            return np.zeros((0, len(self._joined)))
        evidence, targets = model.evidence(past, links), past.target[links]
        for joined, column in zip(self._joined, evidence.T, strict=True):
            joined.grow(len(past.relevance))
            self._join.at(joined.data, targets, column)
        return evidence

    def of(self, urls: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the evidence for URLs that have links, float64 (n, columns)."""
        return np.stack([joined.data[urls] for joined in self._joined], axis=1)


def _scores(
    model: FittedModel, standing: _Standing, urls: NDArray[np.int64]
) -> NDArray[np.float64]:
    # the last bits depend on how many URLs are scored in one go
    rounded: NDArray[np.float64] = np.round(model.scores(urls, standing.of(urls)), 9)
    return rounded
