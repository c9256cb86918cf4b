"""Strategies that score each link once: best-first, hard focus, breadth-first, random."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.strategies.base import Expansion, Strategy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.strategies.base import JudgedPage, Scores, StoredPage, StrategyContext


_FAILURE_PENALTY = 2.0  # a failed fetch; larger than any difference of two relevances


class Evidence(Protocol):
    """Combines the scores of all links to a URL into one score of the URL."""

    def add(self, targets: Ints, scores: Floats) -> Scores:
        """Add scored links; return the URLs with new or changed scores, and the scores.

        Parameters
        ----------
        targets : int64 (n_links,), URL ids of the targets
        scores : float64 (n_links,), finite scores of the links
        """
        ...


class Maximum:
    """The score of a URL is the maximum of the scores of all links to the URL [F99]."""

    def __init__(self) -> None:
        self._best = GrowingArray(np.float64, fill=-np.inf)

    def add(self, targets: Ints, scores: Floats) -> Scores:
        """Add links; see `Evidence.add`."""
        urls = np.unique(targets)
        self._best.grow(int(urls[-1]) + 1 if len(urls) else 0)
        before = self._best.data[urls]
        np.maximum.at(self._best.data, targets, scores)
        after = self._best.data[urls]
        changed = after > before
        return urls[changed], after[changed]


class First:
    """The score of a URL is the score of the first link into the URL [A02 footnote 1]."""

    def __init__(self) -> None:
        self._known = GrowingArray(np.bool_, fill=False)

    def add(self, targets: Ints, scores: Floats) -> Scores:
        """Add links; see `Evidence.add`."""
        urls, first = np.unique(targets, return_index=True)
        self._known.grow(int(urls[-1]) + 1 if len(urls) else 0)
        new = ~self._known.data[urls]
        self._known.data[urls] = True
        return urls[new], scores[first[new]]


class LinkStrategy(Strategy):
    """Base class of strategies that score each link once and combine the scores by a rule.

    A subclass sets the attribute `evidence` and implements the method `score_links`.
    """

    in_rounds = True
    #: combines the scores of several links into a URL
    evidence: Evidence

    @abstractmethod
    def score_links(self, page: JudgedPage) -> Floats:
        """Return a score for each of ``page.links``, or -inf for links not to be followed."""

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, and score each link target by all links to it so far."""
        scores = self.score_links(page)
        return Expansion(scores, *self._add_evidence(page.targets, scores))

    def restore_page(self, page: StoredPage) -> Scores:
        """Add the links of a page from an earlier run, with the stored link scores."""
        return self._add_evidence(page.targets, page.link_scores)

    def _add_evidence(self, targets: Ints, scores: Floats) -> Scores:
        followed = np.isfinite(scores)
        return self.evidence.add(targets[followed], scores[followed])


class BestFirst(LinkStrategy):
    """Follow the links of the most relevant pages first.

    The score of a URL is the maximum relevance of the linking pages (methods.md 3).

    Parameters
    ----------
    tries : whether a URL with failed fetches is ordered after all URLs with fewer failed fetches
        [F99 section 3.3]; a resumed crawl counts from 0
    """

    expects_relevance = True

    def __init__(self, context: StrategyContext, *, tries: bool = False) -> None:
        if not isinstance(tries, bool):
            raise UserError(f"best-first: tries must be true or false, not {tries!r}")
        self.evidence = Maximum()
        self._by_tries = tries
        self._tries = Counter[int]()  # fetches of URLs that failed

    def score_links(self, page: JudgedPage) -> Floats:
        """Score every link with the relevance of the linking page."""
        return np.full(len(page.links), page.relevance)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, with a lower score for URLs whose fetch has failed."""
        expansion = super().expand(page)
        if not self._tries:
            return expansion
        tries = np.array([self._tries[url] for url in expansion.urls.tolist()], np.float64)
        return replace(expansion, scores=expansion.scores - _FAILURE_PENALTY * tries)

    def score_after_failure(self, url: int, score: float) -> float:
        """Return a lower score for a URL whose fetch failed, if the option `tries` is set."""
        if not self._by_tries:
            return score
        self._tries[url] += 1
        return score - _FAILURE_PENALTY


class HardFocus(LinkStrategy):
    """Follow the links of a page only if its most probable class is in the topic.

    The followed links are ordered as by the strategy ``best-first``. The frontier can become empty
    while relevant pages remain.
    """

    expects_relevance = True

    def __init__(self, context: StrategyContext) -> None:
        if not len(context.critic.marked):
            raise UserError(
                "strategy hard-focus needs a critic with classes: use best-first with this critic"
            )
        self._marked = context.critic.marked
        self.evidence = Maximum()

    def score_links(self, page: JudgedPage) -> Floats:
        """Score every link with the page's relevance, or with -inf for off-topic pages."""
        # `marked` includes all leaves below the topics of the user
        assert page.probabilities is not None
        on_topic = self._marked[np.argmax(page.probabilities)]
        return np.full(len(page.links), page.relevance if on_topic else -np.inf)


class BreadthFirst(LinkStrategy):
    """Fetch URLs in the order in which they are found."""

    def __init__(self, context: StrategyContext) -> None:
        self.evidence = First()

    def score_links(self, page: JudgedPage) -> Floats:
        """Return the same score for every link."""
        return np.ones(len(page.links))


class Random(LinkStrategy):
    """Fetch URLs in a random order.

    The score of a URL depends only on the random seed and the id of the URL, so a resumed crawl
    continues in the same order.
    """

    def __init__(self, context: StrategyContext) -> None:
        self._seed = np.uint64(context.random_state % 2**64)
        self.evidence = First()

    def score_links(self, page: JudgedPage) -> Floats:
        """Return a random score for every link, uniformly distributed in [0, 1)."""
        return _uniform(page.targets.astype(np.uint64), self._seed)


def _uniform(counters: NDArray[np.uint64], seed: np.uint64) -> Floats:
    """Hash counters to [0, 1): the output function of SplitMix64 (Steele, Lea, Flood 2014)."""
    with np.errstate(over="ignore"):
        x = _mix(_mix(np.full_like(counters, seed)) + counters * np.uint64(0x9E3779B97F4A7C15))
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
