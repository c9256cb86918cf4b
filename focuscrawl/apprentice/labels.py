"""Training labels of fetched URLs: relevance, graded relevance, or rewards for tunnelling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from focuscrawl.apprentice.options import Options


_MAX_LOG_ODDS = 36.0  # the limit of the precision of a float64 near 1
_MIN_SCALE = float(np.log(99.0))  # with this scale, a relevance of 0.99 has the grade 1
_SCALE_FACTOR = 1.25  # scale over the mean absolute log-odds
_PSEUDO_FETCHES = 2.0  # fetches with relevance 0, added to those through a page
_MAX_CLICKS = 12  # pages back that share in a reward
_MIN_MISSES = 0.1  # share of irrelevant pages from which on grades have no weight


class Labels:
    """Training labels: relevance or tunnel rewards; labels are graded if few pages are irrelevant.

    At first, the crawl of an easy topic fetches hardly any irrelevant page, so nearly all plain
    labels are close to 1. The class `GradedLabels` distinguishes clearly relevant pages from
    borderline pages. Let q be the share of irrelevant pages in the training set, and w = min(1, q
    / 0.1). A label is w times the plain label plus (1 - w) times the graded label, where w is
    small if irrelevant pages are rare. A graded tunnel reward is computed from the grades that
    pages had when they were fetched.
    """

    def __init__(self, options: Options) -> None:
        self._graded = options.graded
        self._tunnel = options.tunnel
        self._grades = GradedLabels()
        self._plain = TunnelRewards()
        self._by_grade = TunnelRewards()

    def add_links(self, pages: Ints, targets: Ints, n_urls: int) -> None:
        """Record that `targets` (n,) were first found on `pages` (n,); all ids < `n_urls`."""
        self._plain.add_links(pages, targets, n_urls)
        if self._graded:
            self._by_grade.add_links(pages, targets, n_urls)

    def observe(self, url: int, relevance: float) -> None:
        """Record a fetch."""
        self._plain.observe(url, relevance)
        if self._graded:
            self._grades.observe(relevance)
            grade = self._grades.grade(np.array([relevance]))[0]
            self._by_grade.observe(url, float(grade))

    def label(self, urls: Ints, relevance: Floats) -> tuple[Floats, Floats]:
        """Return the training labels of fetched URLs.

        Parameters
        ----------
        urls : int64 (n,), ids of the URLs of the training set
        relevance : float64 (n,), relevance of their pages

        Returns
        -------
        own : float64 (n,), labels from the pages alone
        value : float64 (n,), labels that include the pages found through them
        """
        own = relevance
        value = self._plain.reward(urls) if self._tunnel else own
        if not self._graded or not len(urls):
            return own, value
        plain = min(1.0, float((relevance < RELEVANT).mean()) / _MIN_MISSES)
        by_grade = self._grades.grade(relevance)
        own = plain * own + (1.0 - plain) * by_grade
        other = self._by_grade.reward(urls) if self._tunnel else by_grade
        return own, plain * value + (1.0 - plain) * other


class TunnelRewards:
    """Labels that reward an irrelevant page for the relevant pages that it led to.

    Let R(v) be the relevance of a page v, and v_1, v_2, ... the pages found through v, in the
    order fetched. The following formula gives the reward G(v) of the page v (methods.md 6)::

        G(v) = max over k of (R(v) + R(v_1) + ... + R(v_k)) / (1 + k + s [k > 0])

    G(v) is the index of a branching bandit (Weiss 1988), in which each choice (a fetch) offers new
    choices. A relevant page has the reward 1 before the pages that it links to are fetched. The
    reward of an irrelevant page exceeds its relevance if the page leads to relevant pages. With
    the parameter s = 2, an irrelevant page that leads to a single relevant page has only the
    reward 1/4.
    """

    def __init__(self) -> None:
        self._parent = GrowingArray(np.int64, fill=-1)
        self._total = GrowingArray(np.float64)
        self._count = GrowingArray(np.float64)
        self._best = GrowingArray(np.float64)

    def add_links(self, pages: Ints, targets: Ints, n_urls: int) -> None:
        """Record that `targets` (n,) were first found on `pages` (n,); all ids < `n_urls`."""
        self._grow(n_urls)
        # a seed that was fetched before any link to it has no parent, so there is no cycle
        unfetched = self._count.data[targets] == 0.0
        self._parent.data[targets[unfetched]] = pages[unfetched]

    def observe(self, url: int, relevance: float) -> None:
        """Record a fetch, and add its relevance to all pages on the path that led to the URL."""
        self._grow(url + 1)
        parent, total, count = self._parent.data, self._total.data, self._count.data
        best = self._best.data
        total[url] += relevance
        count[url] += 1.0
        best[url] = max(best[url], relevance)
        at = int(parent[url])
        for _ in range(_MAX_CLICKS):
            if at < 0:
                break
            total[at] += relevance
            count[at] += 1.0
            rate = total[at] / (count[at] + _PSEUDO_FETCHES)
            best[at] = max(best[at], rate)
            at = int(parent[at])

    def reward(self, urls: Ints) -> Floats:
        """Return the rewards of fetched URLs, float64 (n,)."""
        return self._best.data[urls]

    def _grow(self, n_urls: int) -> None:
        for array in (self._parent, self._total, self._count, self._best):
            array.grow(n_urls)


class GradedLabels:
    """Training labels that are linear in the log-odds of the relevance.

    Naive Bayes treats words as independent, so the relevance by naive Bayes is close to 0 or 1 on
    nearly every page (methods.md 2). The log-odds of relevance still distinguish clearly relevant
    pages from borderline pages. The grade g of a page v is computed from the log-odds l = log(R(v)
    / (1 - R(v))) of its relevance R(v)::

        g = (1 + l / s) / 2, clipped to [0, 1]; g = 1/2 for R(v) = 1/2; g = 0 for R(v) = 0

    The scale s of the grades is 5/4 of the mean absolute log-odds of the pages fetched so far. The
    scale s is at least log 99, and at most 36, the log-odds of the largest float64 below 1. URLs
    without a page, whose relevance is 0, do not affect the scale s.
    """

    def __init__(self) -> None:
        self._total = 0.0
        self._n = 0

    @property
    def scale(self) -> float:
        """The log-odds of relevance at which the grade reaches 1."""
        mean = self._total / self._n if self._n else 0.0
        return min(max(_SCALE_FACTOR * mean, _MIN_SCALE), _MAX_LOG_ODDS)

    def observe(self, relevance: float) -> None:
        """Record the relevance of a fetched page, and adapt the scale of the grades."""
        if relevance > 0.0:
            self._total += float(np.abs(_log_odds(np.array([relevance]))[0]))
            self._n += 1

    def grade(self, relevance: Floats) -> Floats:
        """Return the grades of pages with this `relevance` (n,), on the present scale."""
        half = np.minimum(np.maximum(_log_odds(relevance) / (2.0 * self.scale), -0.5), 0.5)
        return np.where(relevance > 0.0, 0.5 + half, 0.0)


def _log_odds(relevance: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        odds = np.log(relevance) - np.log1p(-relevance)
    clipped: Floats = np.minimum(np.maximum(odds, -_MAX_LOG_ODDS), _MAX_LOG_ODDS)
    return clipped
