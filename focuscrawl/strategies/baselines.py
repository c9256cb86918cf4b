"""Strategies that score a link once: best-first, hard focus, breadth-first, random."""

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


_FAILURE_PENALTY = (
    2.0  # taken off the score for each fetch that failed: more than any two R differ by
)


class Evidence(Protocol):
    """Makes one score a URL of the scores of its links, in the order they are found."""

    def add(self, targets: Ints, scores: Floats) -> Scores:
        """Take in the links of one page, or of several in order.

        Parameters
        ----------
        targets : int64 (n,), numbers of the URLs the links lead to, may repeat
        scores : float64 (n,), scores of the links, finite

        Returns
        -------
        The distinct URLs whose score is new or changed, and their scores
        """
        ...


class Maximum:
    """The best link into a URL decides [F99: the maximum over all paths]."""

    def __init__(self) -> None:
        self._best = GrowingArray(np.float64, fill=-np.inf)

    def add(self, targets: Ints, scores: Floats) -> Scores:
        """Take in links; see `Evidence.add`."""
        urls = np.unique(targets)
        self._best.grow(int(urls[-1]) + 1 if len(urls) else 0)
        before = self._best.data[urls]
        np.maximum.at(self._best.data, targets, scores)
        after = self._best.data[urls]
        changed = after > before
        return urls[changed], after[changed]


class First:
    """The first link found into a URL decides, later ones do not [A02 footnote 1]."""

    def __init__(self) -> None:
        self._known = GrowingArray(np.bool_, fill=False)

    def add(self, targets: Ints, scores: Floats) -> Scores:
        """Take in links; see `Evidence.add`."""
        urls, first = np.unique(targets, return_index=True)
        self._known.grow(int(urls[-1]) + 1 if len(urls) else 0)
        new = ~self._known.data[urls]
        self._known.data[urls] = True
        return urls[new], scores[first[new]]


class LinkStrategy(Strategy):
    """A strategy made of a score for links and an evidence rule for URLs.

    A subclass sets `evidence` and writes `score_links`.
    """

    in_rounds = True
    #: how the scores of several links to one URL become the URL's score
    evidence: Evidence

    @abstractmethod
    def score_links(self, page: JudgedPage) -> Floats:
        """Return float64 (n,), a score for each of ``page.links``; -inf: do not follow."""

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links, then the URLs by the evidence of all links so far."""
        scores = self.score_links(page)
        return Expansion(scores, *self._add_evidence(page.targets, scores))

    def restore_page(self, page: StoredPage) -> Scores:
        """Weigh the links of an earlier run again."""
        return self._add_evidence(page.targets, page.link_scores)

    def _add_evidence(self, targets: Ints, scores: Floats) -> Scores:
        followed = np.isfinite(scores)
        return self.evidence.add(targets[followed], scores[followed])


class BestFirst(LinkStrategy):
    """Priority of v = R(u), the greatest over all known links (u,v) (methods 3).

    Parameters
    ----------
    tries : order URLs by (tries, R) [F99 section 3.3]: a URL whose fetch failed comes behind all
        that failed less often. A resumed crawl counts from 0
    """

    expects_relevance = True

    def __init__(self, context: StrategyContext, *, tries: bool = False) -> None:
        if not isinstance(tries, bool):
            raise UserError(f"best-first: tries must be true or false, not {tries!r}")
        self.evidence = Maximum()
        self._by_tries = tries
        self._tries = Counter[int]()  # fetches of URLs that failed

    def score_links(self, page: JudgedPage) -> Floats:
        """Score every link with the relevance of its page."""
        return np.full(len(page.links), page.relevance)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links; a URL whose fetch failed stays behind, whatever links to it."""
        expansion = super().expand(page)
        if not self._tries:
            return expansion
        tries = np.array([self._tries[url] for url in expansion.urls.tolist()], np.float64)
        return replace(expansion, scores=expansion.scores - _FAILURE_PENALTY * tries)

    def score_after_failure(self, url: int, score: float) -> float:
        """Put a URL whose fetch failed behind those that failed less often."""
        if not self._by_tries:
            return score
        self._tries[url] += 1
        return score - _FAILURE_PENALTY


class HardFocus(LinkStrategy):
    """Follow the links of u only if its best leaf, or an ancestor of it, is marked.

    Among the links followed the order is that of best-first. A crawl can stagnate: the frontier
    runs empty when no page on the topic is left to expand.
    """

    expects_relevance = True

    def __init__(self, context: StrategyContext) -> None:
        if not len(context.critic.marked):
            raise UserError(
                "strategy hard-focus needs a critic with classes: use best-first with this one"
            )
        self._marked = context.critic.marked
        self.evidence = Maximum()

    def score_links(self, page: JudgedPage) -> Floats:
        """Score every link with the relevance of its page, or refuse them all."""
        # `marked` holds the leaves below every marked topic, so ancestors are covered
        assert page.probabilities is not None
        on_topic = self._marked[np.argmax(page.probabilities)]
        return np.full(len(page.links), page.relevance if on_topic else -np.inf)


class BreadthFirst(LinkStrategy):
    """Fetch URLs in the order they were found: all scores are equal."""

    def __init__(self, context: StrategyContext) -> None:
        self.evidence = First()

    def score_links(self, page: JudgedPage) -> Floats:
        """Give every link the same score."""
        return np.zeros(len(page.links))


class Random(LinkStrategy):
    """Fetch URLs in an order drawn from the seed.

    A URL's score depends on the seed and the URL's number alone, so that a resumed crawl draws
    what an uninterrupted one would have drawn.
    """

    def __init__(self, context: StrategyContext) -> None:
        self._seed = np.uint64(context.random_state % 2**64)
        self.evidence = First()

    def score_links(self, page: JudgedPage) -> Floats:
        """Give every link a score uniform in [0, 1)."""
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
