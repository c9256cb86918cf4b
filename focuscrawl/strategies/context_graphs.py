"""Context graphs: Diligenti, Coetzee, Lawrence, Giles, Gori, VLDB 2000."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.sparse_rows import SparseRows
from focuscrawl.strategies.batch_learner import BatchLearner, FittedModel
from focuscrawl.strategies.distances import distances
from focuscrawl.strategies.link_history import PathFacts
from focuscrawl.strategies.link_words import PathWords
from focuscrawl.strategies.option_checks import check_count, check_number
from focuscrawl.strategies.word_naive_bayes import WordClasses, shares

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.strategies.link_history import Past
    from focuscrawl.strategies.messages import JudgedPage, StrategyContext


class ContextGraphs(BatchLearner):
    """Priority of v = how few clicks from a relevant page u seems to be, then how surely.

    Layer i holds the pages i clicks from a relevant page; a page's layer is guessed by naive Bayes
    over its words, each layer as likely as any other beforehand. A page whose best
    layer is not likely enough is "other", and so is one that looks like those of which no near
    relevant page is known: what they link to comes last, in the order found.

    The paper draws its layers once, backwards from the seeds, with the help of a search engine.
    Here they are those of the crawl so far, over the links known, and drawn anew in batches. Until
    the first relevant page every page is "other": the crawl is breadth-first.

    Parameters
    ----------
    layers : told apart, layer 0 included
    threshold : posterior below which a page is "other"
    length : words that a page counts for, see `WordClasses`; the paper keeps 40 terms of each
    memory : pages learned from, the latest: bounds the cost of a lesson
    batch, growth : see `BatchLearner`
    """

    def __init__(
        self,
        context: StrategyContext,
        *,
        layers: int = 4,
        threshold: float = 0.5,
        length: int = 40,
        memory: int = 3000,
        batch: int = 25,
        growth: float = 0.02,
    ) -> None:
        check_count("context-graphs: layers", layers, 1)
        check_number("context-graphs: threshold", threshold, 0.0, 1.0)
        check_count("context-graphs: length", length, 1)
        check_count("context-graphs: memory", memory, 1)
        self._layers = layers
        self._threshold = threshold
        self._length = length
        self._memory = memory
        self._words = PathWords()
        super().__init__("context-graphs", batch, growth)

    def read(self, page: JudgedPage) -> PathFacts:
        """Take the words of the page."""
        return PathFacts(page.targets, self._words.page(page), SparseRows.empty(len(page.links)))

    def unlearned(self) -> Layers:
        """Return the model for which every page is "other"."""
        return Layers(None, self._threshold)

    def fit(self, past: Past) -> Layers:
        """Learn the layers of the pages so far."""
        relevant = past.relevance > 0.5
        away = distances(past.source, past.target, relevant, limit=self._layers - 1)
        label = np.minimum(away[past.pages], self._layers)[-self._memory :]
        latest = np.arange(len(past.pages))[-self._memory :]
        words = past.page_words.take(latest)
        classes = WordClasses(words, label, self._layers + 1, length=self._length)
        found = np.bincount(label, minlength=self._layers)[: self._layers]
        metrics = {f"layer_{i}": float(n) for i, n in enumerate(found.tolist())}
        return Layers(classes, self._threshold, instances=len(latest), metrics=metrics)


@dataclass(frozen=True, slots=True)
class Layers(FittedModel):
    """A naive Bayes classifier of layers, the last of which is "other"; None: all is "other"."""

    classes: WordClasses | None
    threshold: float

    def evidence(self, past: Past, links: Ints) -> Floats:
        """Return the rank of the page each link is on: layers above "other", and posterior."""
        pages, at = np.unique(past.page[links], return_inverse=True)
        if self.classes is None:
            return np.zeros((len(links), 1))
        likelihood = self.classes.log_likelihood(past.page_words.take(pages))
        posterior = shares(likelihood)
        layer = np.argmax(posterior, axis=1)
        sure = posterior[np.arange(len(pages)), layer]
        other = posterior.shape[1] - 1
        rank = np.where((sure >= self.threshold) & (layer < other), other - layer + sure, 0.0)
        return rank[at][:, None]
