"""Labels of fetched URLs: relevance, or what was found through them, graded if need be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.graded_labels import GradedLabels
from focuscrawl.apprentice.tunnelling import TunnelRewards

if TYPE_CHECKING:
    from focuscrawl.apprentice.options import Options
    from focuscrawl.foundation.arrays import Floats, Ints

_ENOUGH = 0.1  # share of irrelevant pages with which there is nothing to be graded
_RELEVANT = 0.5


class Labels:
    """R(v), or what v opened (`TunnelRewards`), graded while misses are rare; see `Options`.

    Nothing is as plain a label as a miss, as long as there are some. A crawl of an easy topic has
    next to none until the sure links run out, and knows nothing of the others then; there
    `GradedLabels` tell near misses from pages at the heart of the topic. With a share q of
    irrelevant pages among those learned from, values are w times those by R, with
    w = min(1, q / 0.1), and 1 - w times those by the grade of R. A grade that counts for a
    reward is that on the scale of its time.
    """

    def __init__(self, options: Options) -> None:
        self._graded = options.graded
        self._tunnel = options.tunnel
        self._grades = GradedLabels()
        self._plain = TunnelRewards()
        self._by_grade = TunnelRewards()

    def found(self, url: int, targets: Ints, n_urls: int) -> None:
        """Take note that `targets` were met first on the page `url`; all below `n_urls`."""
        self._plain.found(url, targets, n_urls)
        if self._graded:
            self._by_grade.found(url, targets, n_urls)

    def observe(self, url: int, relevance: float) -> None:
        """Take in a fetch."""
        self._plain.observe(url, relevance)
        if self._graded:
            self._grades.observe(relevance)
            grade = self._grades.of(np.array([relevance]))[0]
            self._by_grade.observe(url, float(grade))

    def of(self, urls: Ints, relevance: Floats) -> tuple[Floats, Floats]:
        """Return what fetched URLs were in themselves, and what it was worth to fetch them.

        Parameters
        ----------
        urls, relevance : int64 (n,), float64 (n,), as they were observed; those learned from

        Returns
        -------
        own, value : float64 (n,)
        """
        own = relevance
        value = self._plain.of(urls) if self._tunnel else own
        if not self._graded or not len(urls):
            return own, value
        plain = min(1.0, float((relevance < _RELEVANT).mean()) / _ENOUGH)
        by_grade = self._grades.of(relevance)
        own = plain * own + (1.0 - plain) * by_grade
        other = self._by_grade.of(urls) if self._tunnel else by_grade
        return own, plain * value + (1.0 - plain) * other
