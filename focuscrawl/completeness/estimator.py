"""Estimates how complete a crawl is, from what came of its fetches and from what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.completeness.estimate import Estimate
from focuscrawl.completeness.link_calibration import LinkCalibration
from focuscrawl.foundation.arrays import GrowingArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.foundation.arrays import Floats

_LATE = 8  # the harvest is of one fetch in so many, the last ones
_LEAST_LATE = 25  # fetches
_FEW = 10  # pages off the topic, below which their yield is not to be relied on
_UNSEEN = 0.5  # relevant pages behind those off the topic, before any was found
_DECLINE = 1 / 3  # what a source brings till it is empty, over what it brought so far, a fetch


class Estimator:
    """Sees every fetch of a crawl, and says when asked how many relevant pages are left.

    *Discovered*: the sum of the probabilities of the links that wait (`LinkCalibration`).

    *Not discovered* are two kinds. As long as the harvest has not fallen, nothing says that a
    crawl comes to an end: after n fetches with a harvest h of late, there are hn relevant pages
    in as many fetches more, if the harvest lasts, and it lasts with probability h. And pages
    off the topic may lead to groups of relevant ones. A page begins a *group* if no relevant page
    fetched before it links to it, and it is no seed; what is first found on a page of a group
    belongs to it. What pages off the topic have led to, a page, is expected of each that waits.

    A crawl that fetches the best links first brings ever less of them. If what they bring falls to
    nothing as a parabola does, ever more slowly, links that wait and pages off the topic have a
    third of what such ones brought so far.

    The *next* fetches are of the best links that wait. If the last ones, half as many, brought
    more than these promise, the next ones are expected to bring as much: they will lead to links
    that do not wait yet.

    A crawl of n fetches takes 8 n bytes, and one of m URLs 2 m.

    Parameters
    ----------
    promises : whether scores are the relevance to be expected, and the best links come first
    """

    def __init__(self, *, promises: bool) -> None:
        self._links = LinkCalibration(promises=promises)
        self._rest = _DECLINE if promises else 1.0
        self._relevant = GrowingArray(np.int64)  # pages, by fetches
        self._led_to = GrowingArray(np.bool_)  # by URL: by a relevant page, or it is a seed
        self._in_group = GrowingArray(np.bool_)  # by URL
        self._grouped = _UNSEEN  # relevant pages in groups

    @property
    def fetched(self) -> int:
        """Fetches seen."""
        return len(self._relevant)

    def visited(
        self,
        url: int,
        referrer: int | None,
        score: float | None,
        targets: Sequence[int],
        *,
        relevant: bool,
    ) -> None:
        """Take in a fetch.

        Parameters
        ----------
        url, referrer : numbers of the page, and of the page it was first found on
        score : that it was fetched with; None for a seed, and for where a redirect leads
        targets : of its links that are followed
        """
        before = int(self._relevant.data[-1]) if len(self._relevant) else 0
        self._relevant.extend([before + relevant])
        if score is not None:
            self._links.learn(score, relevant=relevant)
        highest = max(url, -1 if referrer is None else referrer, max(targets, default=-1))
        for array in (self._led_to, self._in_group):
            array.grow(highest + 1)
        led_to, in_group = self._led_to.data, self._in_group.data
        if referrer is None:
            led_to[url] = True
        elif score is None:  # whoever links to a URL that redirects links to where it leads
            led_to[url] |= led_to[referrer]
        if not relevant:
            return
        in_group[url] = not led_to[url] or (referrer is not None and in_group[referrer])
        self._grouped += bool(in_group[url])
        led_to[list(targets)] = True

    def estimate(self, scores: Floats, next_fetches: int) -> Estimate:
        """Return how complete the crawl is.

        Parameters
        ----------
        scores : of the URLs that wait, float64 (n,)
        next_fetches : of how many fetches the harvest is to be told
        """
        probabilities = self._links.probabilities(scores)
        n, relevant = self.fetched, int(self._relevant.data[-1])
        harvest = self._brought(max(_LEAST_LATE, n // _LATE))
        promised = float(probabilities.sum())
        behind = self._yield(n - relevant) * max(len(scores) - promised, 0.0)
        lasting = harvest**2 * n if len(scores) else 0.0
        soon = min(next_fetches, len(scores))
        if soon < len(scores):
            best = np.partition(probabilities, len(scores) - soon)[len(scores) - soon :]
        else:
            best = probabilities
        next_harvest = 0.0
        if soon:
            next_harvest = max(float(best.mean()), self._brought(max(_LEAST_LATE, soon // 2)))
        return Estimate(
            fetched=n,
            relevant=relevant,
            waiting=len(scores),
            discovered=self._rest * promised,
            undiscovered=lasting + self._rest * behind,
            harvest=harvest,
            next_fetches=next_fetches,
            next_harvest=next_harvest,
        )

    def _brought(self, fetches: int) -> float:
        """Return the share of relevant pages among the last fetches."""
        n = self.fetched
        late = min(n, fetches)
        before = int(self._relevant.data[n - late - 1]) if n > late else 0
        return (int(self._relevant.data[-1]) - before) / late

    def _yield(self, off_topic: int) -> float:
        """Return how many relevant pages a page off the topic led to, at most 1."""
        return min(1.0, self._grouped / max(_FEW, off_topic))
