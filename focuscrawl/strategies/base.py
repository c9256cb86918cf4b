"""The base of all strategies: what a crawl may ask of one, and what it gets if it says nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from focuscrawl.foundation.arrays import Ints
    from focuscrawl.strategies.messages import (
        Expansion,
        JudgedPage,
        Lesson,
        RecalledPage,
        Scores,
        StrategyContext,
    )


class Strategy(ABC):
    """Gives every link and every URL its score; made once a crawl from a `StrategyContext`.

    A subclass writes `expand` and `recall`; that is enough for one that scores links when their
    page comes. One that learns sets `learns` and writes `lesson_due`, `learn`, `adopt`, `load`
    and `rescore` too; what a strategy has no use for raises NotImplementedError, and is never
    called. Further parameters of ``__init__`` are the strategy's options; they need
    defaults.

    Attributes
    ----------
    learns : its scores change with what it learns while the crawl runs
    in_rounds : a crawl in rounds (`focuscrawl.rounds`) can go by it: the links of a page can be
        told to another process, which gives them to `recall`. There, URLs have other numbers:
        `recall` is to go by ``page.targets``, and a memo must not depend on what numbers they
        were, but for their order in the page. One that also learns writes `judged`, `pool`,
        `train` and `take_up`
    model_version : of the model that scores links now; 0 before the first lesson
    expects_relevance : its scores are the relevance that is to be expected of a URL, in [0, 1]; a
        live crawl then holds back what is far below links that wait for their hosts
        (`focuscrawl.frontier.patience`)
    self_contained : set from outside, before the first page: memos are to be understood without
        those of pages before them
    lag : how many fetches a replay may go on while a lesson is learned; exactly so many later it
        is adopted. With 0 a replay waits
    """

    learns: bool = False
    in_rounds: bool = False
    expects_relevance: bool = False
    self_contained: bool = False
    model_version: int = 0
    lag: int = 0

    def __init__(self, context: StrategyContext) -> None:  # noqa: B027 - nothing has to be kept
        """Make the strategy of a new or resumed crawl."""

    @abstractmethod
    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, and the URLs they lead to.

        Of a long page of the live Web this runs in another thread; meanwhile nothing else is
        asked of the strategy but what runs in threads, too.
        """

    @abstractmethod
    def recall(self, page: RecalledPage) -> Scores:
        """Take in again, in a resumed crawl, the links that `expand` has seen.

        Calls of `recall` and `observe` come in the order of the earlier run's `expand` and
        `observe`.

        Returns
        -------
        The URLs and scores that `expand` returned
        """

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:  # noqa: B027
        """Take note of what came of a fetch, whatever it was; before `expand` of its page.

        Parameters
        ----------
        url : what was fetched
        relevance : 0 for redirects, errors, duplicates and what is no page (METHODS 1)
        duplicate_of : the earlier page with the same content, None if there is none
        """

    def worth(self, url: int, relevance: float) -> float:
        """Return what a page was worth, in [0, 1]; asked after `expand`, or `recall`.

        A host or a pattern of URLs earns further fetches by pages worth more than 1/2
        (`focuscrawl.crawl.parts.traps`): the relevant ones, unless a strategy knows better.

        Parameters
        ----------
        relevance : R(u), as for `observe`
        """
        return relevance

    def tried(self, url: int, score: float) -> float:
        """Return the score of a URL that was asked for in vain and waits again.

        By default it is as it was.

        Parameters
        ----------
        score : that it was given out with
        """
        return score

    # -- those that learn ------------------------------------------------------------------

    def lesson_due(self) -> bool:
        """Tell whether enough was observed since the last lesson.

        If so, the lesson begins at once, and is to be about what is known now.
        """
        return False

    def learn(self) -> Lesson:
        """Learn from all that was observed; runs in another thread, never twice at a time.

        `expand` and `observe` may be called meanwhile. They go on with the model as it is.
        """
        raise NotImplementedError

    def adopt(self, lesson: Lesson) -> Scores:
        """Score with the lesson's model from now on.

        Returns
        -------
        URLs with links found while the lesson was learned, and their scores by the new model
        """
        raise NotImplementedError

    def load(self, state: bytes) -> int | None:
        """Take up the model of the last lesson; comes before every `recall` and `observe`.

        Returns how many fetches there were when it was adopted; None: as many as when it began.

        What `recall` returns does not matter until those of the lesson's pages are through.
        """
        raise NotImplementedError

    def rescore(self) -> Scores:
        """Return the scores of all URLs that have links.

        Asked in a resumed crawl when all that came before the last lesson was adopted has been
        taken in again. None have changed where there are no lessons.
        """
        return no_scores()

    # -- in rounds: each is gone through by strategies made anew, one a bucket of hosts ---------

    def parts(self, memo: bytes | None, groups: Sequence[Ints]) -> Iterable[bytes | None]:
        """Return what of the memo of a page belongs to each of some groups of its links.

        May run in any thread. By default a memo is about the page, and belongs to all.

        Parameters
        ----------
        groups : int64 (k,) each, ascending. Every link is in one, all links to one URL in the same
        """
        return [memo] * len(groups)

    def contained(self, memo: bytes | None, urls: Sequence[str]) -> bytes | None:
        """Return the memo of a page as it is where the strategy is `self_contained`.

        Parameters
        ----------
        urls : where each of its links leads
        """
        return memo

    def joined(self, parts: Sequence[RecalledPage]) -> bytes | None:
        """Return the memo of a page whose links came in `parts`, one at least.

        Its links are in the order of the parts.
        """
        return parts[0].memo

    def fetched_before(self, url: int, relevance: float) -> None:  # noqa: B027
        """Take note of what came of a fetch in an earlier round, of a URL with links from here."""

    def recall_all(self, pages: Sequence[RecalledPage]) -> Scores:
        """Do what `recall` does for each of some pages, at least one.

        Returns
        -------
        The URLs and their scores by all of it
        """
        return latest([self.recall(page) for page in pages])

    def judged(self) -> bytes | None:
        """Return what is to be learned from in this bucket, for a `pool`; None: nothing is."""
        raise NotImplementedError

    def pool(self) -> Any:
        """Return an empty pool: ``add(data)``, ``len``, and ``options.memory``."""
        raise NotImplementedError

    def train(self, pool: Any) -> tuple[bytes, int, dict[str, float]]:
        """Learn from the pool: state for `take_up`, number of instances, metrics."""
        raise NotImplementedError

    def take_up(self, version: int, state: bytes) -> Lesson:
        """Make of what `train` returned, here or elsewhere, a lesson to `adopt`."""
        raise NotImplementedError

    def outcomes(self) -> bytes | None:
        """Return what is known of fetches beyond what `recall` and `fetched_before` can tell.

        None: nothing is.
        """
        return None

    def take_outcomes(self, outcomes: bytes) -> None:
        """Take up what `outcomes` returned, in place of all that was observed."""
        raise NotImplementedError


def no_scores() -> Scores:
    """Return the scores of no URL."""
    return np.zeros(0, np.int64), np.zeros(0)


def latest(parts: Sequence[Scores]) -> Scores:
    """Join scores given one after another; of a URL that has several the last counts."""
    if len(parts) == 1:
        return parts[0]
    urls = np.concatenate([urls for urls, _ in parts])[::-1]
    distinct, at = np.unique(urls, return_index=True)
    return distinct, np.concatenate([scores for _, scores in parts])[::-1][at]
