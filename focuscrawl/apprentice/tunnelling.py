"""Tunnelling: rewards of fetches carried back along the paths that the crawl took."""

from __future__ import annotations

import numpy as np

from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints

_FARTHEST = 12  # clicks that a reward is carried back


class TunnelRewards:
    """Rates of reward along the paths that the crawl took (METHODS 6).

    A page may be worth fetching for what it opens. Of everything fetched through v, in the order
    fetched, v's value is the greatest mean relevance of a beginning of it::

        G(v) = max over k of (R(v) + R(v_1) + ... + R(v_k)) / (1 + k + s [k > 0])

    This is the index of a branching bandit, in which fetching one page brings up others to
    choose from (Weiss 1988), as realised once. Links to a relevant page, which has G = 1
    by itself, keep their label; those to an irrelevant one get a greater label as far as it paid.

    Parameters
    ----------
    doubt : s, fetches without relevance that are added: one lucky child is not enough
    """

    def __init__(self, doubt: float = 2.0) -> None:
        self.doubt = doubt
        self._parent = GrowingArray(np.int64, fill=-1)
        self._total = GrowingArray(np.float64)
        self._count = GrowingArray(np.float64)
        self._best = GrowingArray(np.float64)

    def found(self, url: int, targets: Ints, n_urls: int) -> None:
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
        for _ in range(_FARTHEST):
            if at < 0:
                break
            total[at] += relevance
            count[at] += 1.0
            rate = total[at] / (count[at] + self.doubt)
            best[at] = max(best[at], rate)
            at = int(parent[at])

    def of(self, urls: Ints) -> Floats:
        """Return G of fetched URLs, float64 (n,)."""
        return self._best.data[urls]

    def _grow(self, n_urls: int) -> None:
        for array in (self._parent, self._total, self._count, self._best):
            array.grow(n_urls)
