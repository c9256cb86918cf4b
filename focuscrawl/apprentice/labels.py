"""Labels of fetched URLs: relevance, graded, or what was found through them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from focuscrawl.apprentice.options import Options


_MAX_LOG_ODDS = 36.0  # log-odds; nearer to 0 or 1 a float64 cannot say much
_LEAST = float(np.log(99.0))  # a scale on which 0.99 is 1
_SCALE_FACTOR = 1.25  # times the mean, the log-odds that 1 stands for
_PSEUDO_FETCHES = 2.0  # fetches without relevance that are added to those through a page
_MAX_CLICKS = 12  # clicks that a reward is carried back
_MIN_MISSES = 0.1  # share of irrelevant pages with which there is nothing to be graded


class Labels:
    """R(v), or what v opened (`TunnelRewards`), graded while misses are rare; see `Options`.

    A crawl of an easy topic has next to no misses until the sure links run out, and knows nothing
    of the others then; there `GradedLabels` tell near misses from pages at the heart of the topic.
    With a share q of irrelevant pages among those learned from, values are w times those by R,
    with w = min(1, q / 0.1), and 1 - w times those by the grade of R. A grade that counts for a
    reward is that on the scale of its time.
    """

    def __init__(self, options: Options) -> None:
        self._graded = options.graded
        self._tunnel = options.tunnel
        self._grades = GradedLabels()
        self._plain = TunnelRewards()
        self._by_grade = TunnelRewards()

    def add_links(self, url: int, targets: Ints, n_urls: int) -> None:
        """Take note that `targets` were met first on the page `url`; all below `n_urls`."""
        self._plain.add_links(url, targets, n_urls)
        if self._graded:
            self._by_grade.add_links(url, targets, n_urls)

    def observe(self, url: int, relevance: float) -> None:
        """Take in a fetch."""
        self._plain.observe(url, relevance)
        if self._graded:
            self._grades.observe(relevance)
            grade = self._grades.grade(np.array([relevance]))[0]
            self._by_grade.observe(url, float(grade))

    def label(self, urls: Ints, relevance: Floats) -> tuple[Floats, Floats]:
        """Return what fetched URLs were in themselves, and what it was worth to fetch them.

        Parameters
        ----------
        urls, relevance : int64 (n,), float64 (n,), as they were observed; those learned from

        Returns
        -------
        own, value : float64 (n,)
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
    """Rates of reward along the paths that the crawl took (methods 6).

    Of everything fetched through v, in the order fetched, the value of v is the greatest mean
    relevance of a beginning of it::

        G(v) = max over k of (R(v) + R(v_1) + ... + R(v_k)) / (1 + k + s [k > 0])

    This is the index of a branching bandit, in which fetching one page brings up others to
    choose from (Weiss 1988). Links to a relevant page, which has G = 1 by itself, keep their
    label; those to an irrelevant one get a greater label as far as it paid.
    With s = 2 one lucky child is not enough.
    """

    def __init__(self) -> None:
        self._parent = GrowingArray(np.int64, fill=-1)
        self._total = GrowingArray(np.float64)
        self._count = GrowingArray(np.float64)
        self._best = GrowingArray(np.float64)

    def add_links(self, url: int, targets: Ints, n_urls: int) -> None:
        """Take note that `targets` were met first on the page `url`; all below `n_urls`."""
        self._grow(n_urls)
        # a seed that was fetched before it was met is nobody's: it would be below its own pages
        self._parent.data[targets[self._count.data[targets] == 0.0]] = url

    def observe(self, url: int, relevance: float) -> None:
        """Take in a fetch: it is to the credit of all pages on the way to it."""
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
        """Return G of fetched URLs, float64 (n,)."""
        return self._best.data[urls]

    def _grow(self, n_urls: int) -> None:
        for array in (self._parent, self._total, self._count, self._best):
            array.grow(n_urls)


class GradedLabels:
    """Relevance by its log-odds, from 0 to 1 as far as this critic goes.

    Naive Bayes takes every word as fresh evidence, so R is close to 0 or 1 on nearly every page
    (methods 2), at the heart of a topic as at its edge. The log-odds tell them apart, so there is
    something to learn even where hardly a fetch goes wrong: links to the edge lead farther out.
    With l = log R / (1 - R), the grade is linear in it::

        g(R) = (1 + l / s) / 2, in [0, 1];  g(0) = 0, g(1/2) = 1/2

    and s is 5/4 of the mean |l| of what was judged so far, between log 99 and the most that a
    float64 can tell from 1: a critic whose probabilities mean what they say is graded on a scale
    of its own. R = 0 is what has no page at all, and does not count towards s.
    """

    def __init__(self) -> None:
        self._total = 0.0
        self._n = 0

    @property
    def scale(self) -> float:
        """The log-odds s from which on the grade is 1."""
        mean = self._total / self._n if self._n else 0.0
        return min(max(_SCALE_FACTOR * mean, _LEAST), _MAX_LOG_ODDS)

    def observe(self, relevance: float) -> None:
        """Take in the relevance of one fetch."""
        if relevance > 0.0:
            self._total += float(np.abs(_log_odds(np.array([relevance]))[0]))
            self._n += 1

    def grade(self, relevance: Floats) -> Floats:
        """Return the grades of R (n,) on the present scale."""
        half = np.clip(_log_odds(relevance) / (2.0 * self.scale), -0.5, 0.5)
        return np.where(relevance > 0.0, 0.5 + half, 0.0)


def _log_odds(relevance: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        odds = np.log(relevance) - np.log1p(-relevance)
    clipped: Floats = np.clip(odds, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
    return clipped
