"""Estimates how complete a crawl is, from what came of its fetches and from what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.completeness.estimate import Estimate
from focuscrawl.completeness.link_calibration import LinkCalibration
from focuscrawl.foundation.arrays import GrowingArray

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats

_LATE = 8  # the harvest is of one fetch in so many, the last ones
_LEAST_LATE = 25  # fetches
_LATE_OFF_TOPIC = 4  # and what pages off the topic lead to, of one of these in so many
_FEW = 10  # pages off the topic, below which their yield is not to be relied on


class Estimator:
    """Sees every fetch of a crawl, and says when asked how many relevant pages are left.

    *Discovered*: the sum of the probabilities of the links that wait (`LinkCalibration`).

    *Not discovered* are two kinds. As long as the harvest has not fallen, nothing says that a
    crawl comes to an end: after n fetches with a harvest h of late, there are hn relevant pages
    in as many fetches more, if the harvest lasts, and it lasts with probability h. And pages
    off the topic may lead to relevant ones, which lead to others: a relevant page *descends*
    from the last page off the topic on the path it was found by. What descends from the last of
    those fetched, a page, is what each that waits will bring.

    A crawl of n fetches takes 16 n bytes, and one of m URLs 8 m.

    Parameters
    ----------
    promises : see `LinkCalibration`
    """

    def __init__(self, *, promises: bool) -> None:
        self._links = LinkCalibration(promises=promises)
        self._relevant = GrowingArray(np.int64)  # pages, by fetches
        self._off_topic = 0
        self._origin = GrowingArray(np.int64, fill=-1)  # by URL: number of the page off the topic
        self._descends = GrowingArray(np.int64)  # the same, of the relevant pages that have one

    @property
    def fetched(self) -> int:
        """Fetches seen."""
        return len(self._relevant)

    def visited(
        self, url: int, referrer: int | None, score: float | None, *, relevant: bool
    ) -> None:
        """Take in a fetch.

        Parameters
        ----------
        url, referrer : numbers of the page, and of the page it was first found on
        score : that it was fetched with; None for a seed, and for where a redirect leads
        """
        before = int(self._relevant.data[-1]) if len(self._relevant) else 0
        self._relevant.extend([before + relevant])
        if score is not None:
            self._links.learn(score, relevant=relevant)
        self._origin.grow(max(url, -1 if referrer is None else referrer) + 1)
        if not relevant:
            self._origin.data[url] = self._off_topic
            self._off_topic += 1
        elif referrer is not None:
            origin = self._origin.data[url] = self._origin.data[referrer]
            if origin >= 0:
                self._descends.extend([origin])

    def estimate(self, scores: Floats, next_fetches: int) -> Estimate:
        """Return how complete the crawl is.

        Parameters
        ----------
        scores : of the URLs that wait, float64 (n,)
        next_fetches : of how many fetches the harvest is to be told
        """
        probabilities = self._links.probabilities(scores)
        n, relevant = self.fetched, int(self._relevant.data[-1])
        late = min(n, max(_LEAST_LATE, n // _LATE))
        before = int(self._relevant.data[n - late - 1]) if n > late else 0
        harvest = (relevant - before) / late
        discovered = float(probabilities.sum())
        off_topic = max(len(scores) - discovered, 0.0)
        undiscovered = harvest**2 * n + self._yield() * off_topic if len(scores) else 0.0
        soon = min(next_fetches, len(scores))
        if soon < len(scores):
            best = np.partition(probabilities, len(scores) - soon)[len(scores) - soon :]
        else:
            best = probabilities
        return Estimate(
            fetched=n,
            relevant=relevant,
            waiting=len(scores),
            discovered=discovered,
            undiscovered=undiscovered,
            harvest=harvest,
            next_fetches=next_fetches,
            next_harvest=float(best.mean()) if soon else 0.0,
        )

    def _yield(self) -> float:
        """Return how many relevant pages descend from one page off the topic, at most 1."""
        late = self._off_topic // _LATE_OFF_TOPIC
        found = np.count_nonzero(self._descends.data >= self._off_topic - late)
        return min(1.0, float(found) / max(_FEW, late))
