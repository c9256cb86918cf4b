"""In-degree and PageRank ordering (Cho, Garcia-Molina, Page 1998)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints, sums
from focuscrawl.strategies.base import Expansion, check_number
from focuscrawl.strategies.baselines import LinkStrategy
from focuscrawl.strategies.rescoring import LinkLog, RescoringStrategy

if TYPE_CHECKING:
    from focuscrawl.strategies.base import JudgedPage, Scores, StoredPage, StrategyContext


_PRECISION = 1e-6  # no rank moves by more than this in the last round
_ROUNDS = 200


class InDegree(LinkStrategy):
    """Priority of v = number of fetched pages that link to v.

    The *backlink count* over the part of the Web seen so far, IB'(p) of Cho, Garcia-Molina and
    Page, Efficient crawling through URL ordering, WWW7 (1998), sections 2 and 3. It rises with
    every new page that links to v; a page counts once however often it links, and not for
    itself. The topic does not matter.
    """

    def __init__(self, context: StrategyContext) -> None:
        self.evidence = LinkSum()

    def score_links(self, page: JudgedPage) -> Floats:
        """Let the first link of the page to each URL count 1, and all others 0."""
        scores = np.zeros(len(page.targets))
        scores[np.unique(page.targets, return_index=True)[1]] = 1.0
        scores[page.targets == page.url] = 0.0
        return scores


class LinkSum:
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


class PageRank(RescoringStrategy[Floats]):
    """Priority of v = PageRank of v over the links seen so far.

    IR'(p) of Cho, Garcia-Molina and Page, Efficient crawling through URL ordering, WWW7 (1998),
    sections 2 and 3: with T_1 ... T_n the fetched pages that link to p, and c_i the number of
    URLs that T_i links to,

        IR(p) = (1 - d) + d (IR(T_1)/c_1 + ... + IR(T_n)/c_n).

    A URL in the frontier has no known links of its own, so its rank follows from that of the
    fetched pages, and only these take part in the iteration. What flows to the frontier does
    not come back: the equation has one solution without it. From one lesson to the next a page
    keeps the rank it had when it was fetched, and new links raise their targets at once. A page
    counts once however often it links, and not for itself. The topic does not matter.

    Parameters
    ----------
    damping : d; 0.9 as in the paper's experiments
    every, growth : fetches from one computation to the next, at least and as a share of all
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
        self._inflow = GrowingArray(np.float64)  # by URL: the sum in the equation

    def expand(self, page: JudgedPage) -> Expansion:
        """Give each link an equal share of the page's rank."""
        urls, share = self._add_page(page.url, page.targets)
        link_scores = np.full(len(page.targets), self.damping * share)
        return Expansion(link_scores, urls, self._ranks(urls))

    def restore_page(self, page: StoredPage) -> Scores:
        """Take in the links of an earlier run."""
        urls, _ = self._add_page(page.url, page.targets)
        return urls, self._ranks(urls)

    def fit_model(self, observed: int, pages: int) -> tuple[Floats, Scores]:
        """Solve the equation for the first `pages` pages; the model is the inflow of each URL."""
        source, target, _ = self.log.links(pages)
        # in the order of the links, as `_distribute_rank` adds: to the last bit the same sums
        inflow = sums(target, self._solve(source, target), 0)
        urls = np.unique(target)
        return inflow, (urls, 1.0 - self.damping + self.damping * inflow[urls])

    def use_model(self, model: Floats, pages: int) -> Scores:
        """Go on from an inflow, adding that of later pages one after another."""
        self._inflow.data[:] = 0.0
        self._inflow.grow(len(model))
        self._inflow.data[: len(model)] = model
        later = [*self.log.pages_since(pages)]
        for url, links in later:
            self._distribute_rank(url, links)
        urls = np.unique(np.concatenate([links for _, links in later] or [np.zeros(0, np.int64)]))
        return urls, self._ranks(urls)

    def _add_page(self, url: int, targets: Ints) -> tuple[Ints, float]:
        """Add a page; return the URLs it links to and what each gets of its rank."""
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
        """Return what each link passes on, float64 (n_links,)."""
        # by URL: a page whose later links were found by another fetch is there twice
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
            flow = sums(target, (ranks / degree)[source], n)
            ranks = 1.0 - d + d * flow
            if np.abs(ranks - before).max(initial=0.0) < _PRECISION:
                break
        return (ranks / degree)[of_link]
