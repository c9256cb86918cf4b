"""Strategies that fit a model to the whole crawl so far, batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.strategies.link_history import LinkHistory, PathFacts
from focuscrawl.strategies.messages import Expansion
from focuscrawl.strategies.rescoring_strategy import RescoringStrategy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.strategies.link_history import Past
    from focuscrawl.strategies.messages import JudgedPage, RecalledPage, Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedModel(ABC):
    """What a lesson makes of the crawl so far, by `BatchLearner.fit`.

    Attributes
    ----------
    instances : how many the lesson learned from
    metrics : what the lesson found; goes to the store
    """

    instances: int = 0
    metrics: dict[str, float] = field(default_factory=dict)

    @abstractmethod
    def evidence(self, past: Past, links: Ints) -> Floats:
        """Return what links, by their ascending numbers, say of their targets: (n, columns).

        Not called without links.
        """

    def scores(self, urls: Ints, evidence: Floats) -> Floats:
        """Return the scores of URLs by the joined evidence of their links, (n, columns)."""
        return evidence[:, 0]


class BatchLearner(RescoringStrategy["JoinedEvidence"]):
    """A strategy that keeps what the crawl has shown and fits a model to it in batches.

    Parameters
    ----------
    name : of the strategy, for messages
    batch, growth : fetches from one lesson to the next, at least and as a share of all fetches,
        so that lessons cost each fetch the same at any age of the crawl
    """

    period_option = "batch"
    #: how the evidence of several links into one URL is joined: `numpy.maximum` or `numpy.add`
    join: ClassVar[np.ufunc] = np.maximum
    columns: ClassVar[int] = 1

    def __init__(self, name: str, batch: int, growth: float) -> None:
        self._crawled = LinkHistory()
        super().__init__(name, batch, growth, self._crawled)
        self._joined = JoinedEvidence(self.unlearned(), self.join, self.columns)

    @abstractmethod
    def read(self, page: JudgedPage) -> PathFacts:
        """Take from a page what will be learned from."""

    @abstractmethod
    def unlearned(self) -> FittedModel:
        """Return the model that scores links until there was something to learn from."""

    @abstractmethod
    def fit(self, past: Past) -> FittedModel:
        """Learn from the crawl so far; may run beside all other methods."""

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

    def interval(self) -> int:
        """Return how many fetches come between two lessons by now."""
        return int(super().interval())

    def lesson_due(self) -> bool:
        """Tell whether a batch is complete and anything relevant was seen yet."""
        return self._crawled.relevant > 0 and super().lesson_due()

    def work_out(self, observed: int, pages: int) -> tuple[JoinedEvidence, Scores]:
        """Fit a model to the crawl so far, and score by it what waits."""
        past = self._crawled.past(observed, pages)
        joined = JoinedEvidence(self.fit(past), self.join, self.columns)
        # what was fetched never waits again
        joined.add(past, np.flatnonzero(np.isnan(past.relevance[past.target])))
        waiting = past.waiting
        return joined, (waiting, joined.scores(waiting))

    def take_over(self, model: JoinedEvidence, pages: int) -> Scores:
        """Score by a model, over the links of later pages too."""
        self._joined, past = model, self._crawled.now()
        later = np.arange(self._crawled.links_of(pages), len(past.target))
        model.add(past, later)
        urls = np.unique(past.target[later])
        return urls, model.scores(urls)

    def describe(self, model: JoinedEvidence, pages: int) -> tuple[int, Mapping[str, float]]:
        """Return instances and metrics of a lesson."""
        return model.of.instances, model.of.metrics

    def _take_in(self, url: int, facts: PathFacts) -> tuple[Floats, Ints, Floats]:
        """Return the scores of links, the distinct URLs they lead to, and the scores of these."""
        start = self._crawled.add(url, facts)
        urls = np.unique(facts.targets)
        if self.before_lesson or not len(urls):
            return np.zeros(len(facts.targets)), urls, np.zeros(len(urls))
        past = self._crawled.now()
        evidence = self._joined.add(past, np.arange(start, len(past.target)))
        of_links = np.round(self._joined.of.scores(facts.targets, evidence), 9)
        return of_links, urls, self._joined.scores(urls)


class JoinedEvidence:
    """The evidence of all links into each URL, joined, by the model `of`."""

    def __init__(self, of: FittedModel, join: np.ufunc, columns: int) -> None:
        self.of = of
        self._join = join
        nothing = -np.inf if join is np.maximum else 0.0
        self._joined = [GrowingArray(np.float64, fill=nothing) for _ in range(columns)]

    def add(self, past: Past, links: Ints) -> Floats:
        """Take in the evidence of links; return it, float64 (n, columns)."""
        if not len(links):
            return np.zeros((0, len(self._joined)))
        evidence, targets = self.of.evidence(past, links), past.target[links]
        for joined, column in zip(self._joined, evidence.T, strict=True):
            joined.grow(len(past.relevance))
            self._join.at(joined.data, targets, column)
        return evidence

    def scores(self, urls: Ints) -> Floats:
        """Return the scores of URLs that have links."""
        evidence = np.stack([joined.data[urls] for joined in self._joined], axis=1)
        # the last bits depend on how many URLs are scored in one go
        return np.round(self.of.scores(urls, evidence), 9)
