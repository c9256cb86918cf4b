"""Patience: decides whether to fetch a link now or to wait for better links of busy hosts."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.frontier.frontier import Frontier


_MAX_BUSY_HOSTS = 8  # busy hosts with the best links that are considered
_RECENT_PAGES = 50  # pages that the number of new links a page is estimated from
_REFRESH_SECONDS = 1.0  # seconds between two estimates from all queued URLs
_BINS = 256  # bins of a score


class Patience:
    """Computes the minimum score of a link to fetch now, while better links wait for busy hosts.

    A link is delayed if two conditions hold. First, the score of a better link w of a busy host
    must be worth the wait. If the busy host needs s seconds per link, a link v waits for the link
    w under the following condition, where `patience` is in seconds per relevant page::

        score(w) - score(v) > s / patience

    The length of the busy host's queue does not matter, because a fetch that is not used now
    remains in the budget for the busy host.

    Second, there are enough better links to use up the remaining budget. With a remaining budget
    of B fetches, at least B links must score higher than the link v. These B links are queued
    links and expected new links. The number of expected new links is B times the mean number of
    new links on the latest pages.

    Parameters
    ----------
    frontier : frontier whose scores are the expected relevance of URLs
    patience : acceptable wait in seconds for one more relevant page, above 0
    """

    def __init__(self, frontier: Frontier, patience: float) -> None:
        self._frontier = frontier
        self._price = 1.0 / patience
        self._recent_scores: deque[Sequence[float]] = deque(maxlen=_RECENT_PAGES)
        self._cutoff = -math.inf
        self._refreshed_at = -math.inf

    def add_page(self, scores: Sequence[float]) -> None:
        """Record the scores of the new links of a page."""
        if len(self._recent_scores) < _RECENT_PAGES:
            self._refreshed_at = -math.inf  # each page still changes the estimate much
        self._recent_scores.append([score for score in scores if math.isfinite(score)])

    def min_score(self, score: float, budget_left: float, now: float) -> float:
        """Return the score below which a link is delayed.

        Parameters
        ----------
        score : score of the best link that can be fetched
        budget_left : remaining fetches of the budget; inf: no budget, so no link is delayed
        """
        if budget_left == math.inf:
            return -math.inf
        if now - self._refreshed_at >= _REFRESH_SECONDS:
            self._refreshed_at = now
            self._cutoff = self._cutoff_score(budget_left)
        if self._cutoff <= score:
            return -math.inf
        busy = self._frontier.busy_host_links(now, score, _MAX_BUSY_HOSTS)
        net_scores = [
            each.score - self._price * each.seconds for each in busy if each.score < math.inf
        ]
        return min(max(net_scores, default=-math.inf), self._cutoff)

    def _cutoff_score(self, budget_left: float) -> float:
        """Return the score that `budget_left` queued or expected links exceed; -inf if fewer."""
        queued = _histogram(self._frontier.halved_scores())
        new = _histogram(np.array([score for page in self._recent_scores for score in page]))
        supply = np.cumsum((queued + budget_left * new / max(len(self._recent_scores), 1))[::-1])
        at = int(np.searchsorted(supply, budget_left))
        return -math.inf if at == _BINS else (_BINS - 1 - at) / (_BINS - 1)


def _histogram(scores: Floats) -> Ints:
    """Count scores, clipped to [0, 1], in `_BINS` bins."""
    bins = (np.clip(scores, 0.0, 1.0) * (_BINS - 1)).astype(np.int64)
    return np.bincount(bins, minlength=_BINS)
