"""Patience: whether a link is worth a fetch of the budget now, or a better one worth a wait."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.frontier.frontier import Frontier


_MAX_BUSY_HOSTS = 8  # busy hosts that are looked at, those with the best links
_RECENT_PAGES = 50  # the latest, by which the links of a page are estimated
_REFRESH_SECONDS = 1.0  # seconds between two looks at all URLs that wait
_BINS = 256  # of a score, in these estimates


class Patience:
    """Decides which score a link must have to be fetched while better ones wait for their hosts.

    A fetch of the budget is spent once, and waiting costs nothing but time: a link is held back if
    the rest of the budget will go to better ones anyway, and one of these is worth the wait.

    *Is it worth it?* A link w of a busy host costs the seconds s that its host takes for each. It
    is worth waiting for, rather than to fetch v, if

        score(w) - score(v) > s / patience,

    patience in seconds a relevant page. That s is all the wait there is, however long the
    host's queue: one fetch less for v is one more for that host, at the end of the crawl.

    *Will v be needed?* With B fetches left, v is fetched in the end if less than B links are
    better: then there is no gain in holding it back. Better ones are among the links that wait,
    and among those that the crawl will find, B times what the latest pages brought on average.

    Parameters
    ----------
    frontier : whose scores are expected relevances
    patience : seconds that one more relevant page is worth, above 0
    """

    def __init__(self, frontier: Frontier, patience: float) -> None:
        self._frontier = frontier
        self._price = 1.0 / patience
        self._recent_scores: deque[Sequence[float]] = deque(maxlen=_RECENT_PAGES)
        self._cutoff = -math.inf
        self._refreshed_at = -math.inf

    def add_page(self, scores: Sequence[float]) -> None:
        """Add the scores of the links of a page."""
        if len(self._recent_scores) < _RECENT_PAGES:
            self._refreshed_at = -math.inf  # each page still changes much
        self._recent_scores.append([score for score in scores if math.isfinite(score)])

    def min_score(self, score: float, left: float, now: float) -> float:
        """Return the score below which a link is held back; `score` or less: it is not.

        Parameters
        ----------
        score : of the best link that may be fetched
        left : fetches of the budget; inf: there is none, and everything is needed
        now : seconds on the frontier's clock
        """
        if left == math.inf:
            return -math.inf
        if now - self._refreshed_at >= _REFRESH_SECONDS:
            self._refreshed_at = now
            self._cutoff = self._cutoff_score(left)
        if self._cutoff <= score:
            return -math.inf
        awaited = self._frontier.busy_host_links(now, score, _MAX_BUSY_HOSTS)
        worth = [
            each.score - self._price * each.seconds for each in awaited if each.score < math.inf
        ]
        return min(max(worth, default=-math.inf), self._cutoff)

    def _cutoff_score(self, left: float) -> float:
        """Return the score that as many links have or will have as there are fetches left.

        -inf if there are not so many.
        """
        waiting = _histogram(self._frontier.scores_in_queues())
        brought = _histogram(np.array([score for page in self._recent_scores for score in page]))
        supply = np.cumsum((waiting + left * brought / max(len(self._recent_scores), 1))[::-1])
        at = int(np.searchsorted(supply, left))
        return -math.inf if at == _BINS else (_BINS - 1 - at) / (_BINS - 1)


def _histogram(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count scores by their steps from 0 to 1, int64 (_STEPS,); those beyond are at the ends."""
    steps = (np.clip(scores, 0.0, 1.0) * (_BINS - 1)).astype(np.int64)
    return np.bincount(steps, minlength=_BINS)
