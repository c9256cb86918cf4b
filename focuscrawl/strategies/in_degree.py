"""In-degree: the URL that most pages link to comes first (Cho, Garcia-Molina, Page 1998)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.strategies.link_strategy import LinkStrategy

if TYPE_CHECKING:
    from focuscrawl.strategies.messages import JudgedPage, Scores, StrategyContext


class InDegree(LinkStrategy):
    """Priority of v = number of fetched pages that link to v.

    The *backlink count* over the part of the Web seen so far, IB'(p) of Cho, Garcia-Molina and
    Page, Efficient crawling through URL ordering, WWW7 (1998), sections 2 and 3. It rises with
    every new page that links to v; a page counts once however often it links, and not for
    itself. The topic does not matter.
    """

    def __init__(self, context: StrategyContext) -> None:
        self.evidence = Total()

    def score_links(self, page: JudgedPage) -> Floats:
        """Let the first link of the page to each URL count 1, and all others 0."""
        scores = np.zeros(len(page.targets))
        scores[np.unique(page.targets, return_index=True)[1]] = 1.0
        scores[page.targets == page.url] = 0.0
        return scores


class Total:
    """All links into a URL add up."""

    def __init__(self) -> None:
        self._total = GrowingArray(np.float64)
        self._known = GrowingArray(np.bool_, fill=False)

    def add(self, targets: Ints, scores: Floats) -> Scores:
        """Take in links; see `focuscrawl.strategies.Evidence.add`."""
        urls = np.unique(targets)
        for column in (self._total, self._known):
            column.grow(int(urls[-1]) + 1 if len(urls) else 0)
        before = self._total.data[urls]
        np.add.at(self._total.data, targets, scores)
        after = self._total.data[urls]
        changed = (after != before) | ~self._known.data[urls]
        self._known.data[urls] = True
        return urls[changed], after[changed]
