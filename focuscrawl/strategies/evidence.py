"""Evidence rules: one score of a URL from those of the links into it (METHODS 3 and 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from focuscrawl.strategies.messages import Scores


class Evidence(Protocol):
    """Takes links in the order they are found; remembers what it needs of them."""

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
