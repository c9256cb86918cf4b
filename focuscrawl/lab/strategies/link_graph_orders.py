"""Frontier ordering by in-degree and by PageRank (Cho, Garcia-Molina and Page 1998)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints, sum_by_group
from focuscrawl.strategies.base import Expansion, check_number
from focuscrawl.strategies.baselines import LinkStrategy
from focuscrawl.strategies.rescoring import LinkLog, RescoringStrategy

if TYPE_CHECKING:
    from focuscrawl.strategies.base import JudgedPage, Scores, StoredPage, StrategyContext


_PRECISION = 1e-6  # largest change of a rank in the last iteration
_ROUNDS = 200


class InDegree(LinkStrategy):
    """The priority of a URL v is the number of fetched pages that link to v.

    The number of linking pages is the *backlink count* IB'(p) of a page p in Cho, Garcia-Molina
    and Page, Efficient crawling through URL ordering, WWW7 (1998), sections 2 and 3. Several links
    from one page to a URL count once, and links of a page to itself do not count. The score of a
    URL does not depend on the topic of the crawl.
    """

    def __init__(self, context: StrategyContext) -> None:
        self.evidence = LinkSum()

    def score_links(self, page: JudgedPage) -> Floats:
        """Return score 1 for a page's first link to each other URL, and 0 for all other links."""
        scores = np.zeros(len(page.targets))
        scores[np.unique(page.targets, return_index=True)[1]] = 1.0
        scores[page.targets == page.url] = 0.0
        return scores


class LinkSum:
    """Scores a URL by the sum of the scores of all links to the URL."""

    def __init__(self) -> None:
        self._total = GrowingArray(np.float64)
        self._known = GrowingArray(np.bool_, fill=False)

    def add(self, targets: Ints, scores: Floats) -> Scores:
        """Add links; see `focuscrawl.strategies.Evidence.add`."""
        urls = np.unique(targets)
        for column in (self._total, self._known):
            column.grow(int(urls[-1]) + 1 if len(urls) else 0)
        before = self._total.data[urls]
        np.add.at(self._total.data, targets, scores)
        after = self._total.data[urls]
        changed = (after != before) | ~self._known.data[urls]
        self._known.data[urls] = True
        return urls[changed], after[changed]


class PageRank(RescoringStrategy[Floats]):
    """The priority of a URL v is the PageRank of v in the graph of the links seen so far.

    PageRank is the rank IR'(p) of a page p in Cho, Garcia-Molina and Page, Efficient crawling
    through URL ordering, WWW7 (1998), sections 2 and 3. In the following equation, T_1 ... T_n are
    the fetched pages that link to a page p, and c_i is the number of URLs that T_i links to:

        IR(p) = (1 - d) + d (IR(T_1)/c_1 + ... + IR(T_n)/c_n).

    The links of queued URLs are unknown, so the PageRank iteration covers fetched pages only. The
    rank of a queued URL is computed from the ranks of the fetched pages that link to the URL.
    Between two PageRank computations, a page keeps the rank that the page had when it was fetched.
    New links increase the ranks of their target URLs. Several links from one page to another page
    count once, and links of a page to itself do not count. The PageRank of a URL does not depend
    on the topic of the crawl.

    Parameters
    ----------
    damping : float
        Damping factor d; 0.9 as in the paper's experiments.
    every, growth : int, float
        Fetches between two computations: at least `every`, and at least this share of all fetches.
    """

    def __init__(
        self,
        context: StrategyContext,
        *,
        damping: float = 0.9,
        every: int = 50,
        growth: float = 0.05,
    ) -> None:
        check_number("pagerank: damping", damping, 0, 0.99)
        super().__init__("pagerank", every, growth, LinkLog())
        self.damping = damping
        self._inflow = GrowingArray(np.float64)  # by URL: the sum in brackets in the equation

    def expand(self, page: JudgedPage) -> Expansion:
        """Score each link by the page's rank, divided equally among the linked URLs."""
        urls, share = self._add_page(page.url, page.targets)
        link_scores = np.full(len(page.targets), self.damping * share)
        return Expansion(link_scores, urls, self._ranks(urls))

    def restore_page(self, page: StoredPage) -> Scores:
        """Restore the links of a page that an earlier run of the crawl has fetched."""
        urls, _ = self._add_page(page.url, page.targets)
        return urls, self._ranks(urls)

    def fit_model(self, observed: int, pages: int) -> tuple[Floats, Scores]:
        """Solve the PageRank equation for the first `pages` pages; return the ranks of URLs."""
        source, target, _ = self.log.links(pages)
        # added in the order of the links, as in `_distribute_rank`, for bit-identical sums
        inflow = sum_by_group(target, self._solve(source, target), 0)
        urls = np.unique(target)
        return inflow, (urls, 1.0 - self.damping + self.damping * inflow[urls])

    def use_model(self, model: Floats, pages: int) -> Scores:
        """Use the ranks in `model` (from `fit_model`), and add ranks of pages fetched later."""
        self._inflow.data[:] = 0.0
        self._inflow.grow(len(model))
        self._inflow.data[: len(model)] = model
        later = [*self.log.pages_since(pages)]
        for url, links in later:
            self._distribute_rank(url, links)
        urls = np.unique(np.concatenate([links for _, links in later] or [np.zeros(0, np.int64)]))
        return urls, self._ranks(urls)

    def _add_page(self, url: int, targets: Ints) -> tuple[Ints, float]:
        """Add a page; return the URLs that the page links to and the rank that each receives."""
        targets = np.unique(targets)
        urls = targets[targets != url]
        if not len(urls):
            return targets, 0.0
        self.log.add_links(url, urls)
        return targets, self._distribute_rank(url, urls)

    def _distribute_rank(self, url: int, urls: Ints) -> float:
        self._inflow.grow(max(url, int(urls[-1])) + 1)
        share = float(self._ranks(np.array([url]))[0]) / len(urls)
        self._inflow.data[urls] += share
        return share

    def _ranks(self, urls: Ints) -> Floats:
        if len(urls):
            self._inflow.grow(int(urls.max()) + 1)
        return 1.0 - self.damping + self.damping * self._inflow.data[urls]

    def _solve(self, source: Ints, target: Ints) -> Floats:
        """Return the rank that each link passes on, of shape (n_links,)."""
        # grouped by URL: a page with links from two fetches occurs twice in the log
        urls, of_link = np.unique(source, return_inverse=True)
        n, d, source = len(urls), self.damping, of_link
        row = np.full(max(int(urls.max(initial=0)), int(target.max(initial=0))) + 1, -1)
        row[urls] = np.arange(n)
        degree = np.bincount(source, minlength=n)
        inside = row[target] >= 0
        source, target = source[inside], row[target[inside]]
        ranks = np.ones(n)
        for _ in range(_ROUNDS):
            before = ranks
            flow = sum_by_group(target, (ranks / degree)[source], n)
            ranks = 1.0 - d + d * flow
            if np.abs(ranks - before).max(initial=0.0) < _PRECISION:
                break
        return (ranks / degree)[of_link]
