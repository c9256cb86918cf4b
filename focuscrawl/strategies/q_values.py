"""Q-values: Rennie and McCallum, Using reinforcement learning to spider the Web, ICML 1999."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.sparse_rows import beside
from focuscrawl.foundation.arrays import Floats, Ints, sums
from focuscrawl.strategies.batch_learner import BatchLearner, FittedModel
from focuscrawl.strategies.discounting import discounted_rewards
from focuscrawl.strategies.link_history import PathFacts
from focuscrawl.strategies.link_words import PathWords
from focuscrawl.strategies.option_checks import check_count, check_number
from focuscrawl.strategies.word_naive_bayes import WordClasses

if TYPE_CHECKING:
    from focuscrawl.strategies.link_history import Past
    from focuscrawl.strategies.messages import JudgedPage, StrategyContext

_LINKS = 8  # links of a URL that are learned from, the first found


class QValues(BatchLearner):
    """Priority of v = the discounted reward that the words of a link into it promise.

    The value of a link (u,v) that was followed is worked out from what was found behind v (see
    `discounted_rewards`). Values are put into bins, and naive Bayes tells the bin of a new link by
    the words inside and near it, those of its URL, and those of its page; its score is the mean
    value of each bin weighed by the bin's posterior. The best link into v counts.

    The paper learns from whole sites that were crawled before. Here it is the crawl so far, in
    batches, and a first few relevant pages say little: so the score is mixed with R(u) by the
    number n of relevant pages known, with n / (n + `trust`).

    Parameters
    ----------
    gamma : discount a fetch; the paper's is 1/2
    bins : of values: one for 0, the others share what is above 0 equally
    length : words that a link counts for, and again those of its page, see `WordClasses`
    trust : relevant pages at which what was learned counts half
    memory : links learned from, the latest: bounds the cost of a lesson
    batch, growth : see `BatchLearner`
    """

    def __init__(
        self,
        context: StrategyContext,
        *,
        gamma: float = 0.5,
        bins: int = 4,
        length: float = 10.0,
        trust: float = 30.0,
        memory: int = 12000,
        batch: int = 25,
        growth: float = 0.05,
    ) -> None:
        check_number("q-values: gamma", gamma, 0.0, 0.5)
        check_count("q-values: bins", bins, 2)
        check_number("q-values: length", length, 1)
        check_number("q-values: trust", trust, 0.0)
        check_count("q-values: memory", memory, 1)
        self._gamma = gamma
        self._bins = bins
        self._length = length
        self._trust = trust
        self._memory = memory
        self._words = PathWords()
        super().__init__("q-values", batch, growth)

    def read(self, page: JudgedPage) -> PathFacts:
        """Take the words of the page, and those in, near and behind its links."""
        links, _ = beside(self._words.surroundings(page), self._words.addresses(page))
        return PathFacts(page.targets, self._words.page(page), links)

    def unlearned(self) -> Values:
        """Return the model that knows R(u) alone."""
        return Values(None, None, np.zeros(0), 0.0)

    def fit(self, past: Past) -> Values:
        """Learn the values of the links followed so far."""
        links = np.flatnonzero(~np.isnan(past.relevance[past.target]))
        links = links[np.argsort(past.target[links], kind="stable")]
        rank = np.arange(len(links)) - np.searchsorted(past.target[links], past.target[links])
        links = np.sort(links[rank < _LINKS])[-self._memory :]
        relevant = float((past.relevance > 0.5).sum())
        if not len(links):  # nothing but seeds was fetched
            return self.unlearned()
        urls, at = np.unique(past.target[links], return_inverse=True)
        worth = discounted_rewards(
            past.source, past.target, past.relevance, urls, gamma=self._gamma
        )
        labels, means = bins_of(worth, self._bins)
        weight = (1.0 / np.bincount(at))[at]  # a URL counts 1
        of_links = WordClasses(
            past.link_words.take(links), labels[at], len(means), length=self._length, weight=weight
        )
        # many links of a page fall into the same bin: its words are counted for all at once
        pair, which = np.unique(past.page[links] * len(means) + labels[at], return_inverse=True)
        of_pages = WordClasses(
            past.page_words.take(pair // len(means)),
            pair % len(means),
            len(means),
            length=self._length,
            weight=sums(which, weight, len(pair)),
        )
        metrics = {"mean_value": float(worth.mean()), "bins": float(len(means))}
        trust = relevant / (relevant + self._trust)
        return Values(of_links, of_pages, means, trust, instances=len(links), metrics=metrics)


def bins_of(values: Floats, bins: int) -> tuple[Ints, Floats]:
    """Put values (n,) into bins.

    Returns
    -------
    labels : int64 (n,); bin 0 is that of the value 0, the others hold about equally many
    means : float64, the mean value of each bin; at most `bins`, fewer where values are equal
    """
    above = values[values > 0.0]
    shares = np.arange(bins - 1) / max(bins - 1, 1)
    edges = np.unique(np.quantile(above, shares)) if len(above) else np.zeros(0)
    labels = np.searchsorted(edges, values, side="right")
    n = len(edges) + 1
    return labels, np.bincount(labels, values, n) / np.maximum(np.bincount(labels, minlength=n), 1)


@dataclass(frozen=True, slots=True)
class Values(FittedModel):
    """Classifiers of bins by the words of links and pages, and the mean value of each bin.

    `trust` is the share of what they say in the score, the rest is R(u).
    """

    of_links: WordClasses | None
    of_pages: WordClasses | None
    means: Floats
    trust: float

    def evidence(self, past: Past, links: Ints) -> Floats:
        """Return the value to be expected of each link."""
        relevance = past.relevance[past.source[links]][:, None]
        if self.of_links is None or self.of_pages is None:
            return relevance
        pages, at = np.unique(past.page[links], return_inverse=True)
        likelihood = self.of_links.log_likelihood(past.link_words.take(links))
        likelihood += self.of_pages.log_likelihood(past.page_words.take(pages))[at]
        expected = (self.of_links.posterior(likelihood) * self.means).sum(axis=1)
        mixed: Floats = (1.0 - self.trust) * relevance
        mixed += self.trust * expected[:, None]
        return mixed
