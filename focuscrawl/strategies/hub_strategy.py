"""Hub scores as a part of a URL's priority (methods 7; F99 section 3.2)."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.distiller import Distiller, LinkGraph, Sites
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.foundation.urls import host
from focuscrawl.strategies.base import Expansion, check_number
from focuscrawl.strategies.rescoring import LinkLog, RescoringStrategy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.strategies.base import JudgedPage, Scores, StoredPage, StrategyContext


class Hubs(RescoringStrategy[Floats]):
    """Priority of v = (1 - w) R(u) + w p(v): soft focus, and what hubs promise of v.

    R(u) is that of the best page that links to v, as in best-first; p(v) the authority score
    that v would have if it were relevant, as far as the hubs known at the last distillation
    link to it (`focuscrawl.distiller.Distiller.score_unfetched`), as a share of the largest.

    Parameters
    ----------
    weight : w, in [0, 1]
    every, growth : fetches from one distillation to the next, at least and as a share of all
    """

    def __init__(
        self,
        context: StrategyContext,
        *,
        weight: float = 0.5,
        every: int = 50,
        growth: float = 0.05,
    ) -> None:
        check_number("hubs: weight", weight, 0, 1)
        super().__init__("hubs", every, growth, LinkLog())
        self.weight = weight
        self._fetches = GrowingArray(np.int64)  # when each page was taken in
        self._host = GrowingArray(np.int64, fill=-1)  # by URL, any numbers
        self._best = GrowingArray(np.float64)  # R(u) of the best page, by URL
        self._promise = np.zeros(0)
        self._numbers: dict[str, int] = {}

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, and the URLs they lead to."""
        urls = [page.view.url, *(page.view.links.urls[i] for i in page.links.tolist())]
        hosts = self._hosts(urls)
        changed, scores = self._take_in(page.url, page.relevance, page.targets, hosts)
        link_scores = self._scores(np.full(len(page.targets), page.relevance), page.targets)
        return Expansion(link_scores, changed, scores, memo=hosts.astype("<i8").tobytes())

    def restore_page(self, page: StoredPage) -> Scores:
        """Take in the links of an earlier run."""
        assert page.memo is not None
        hosts = np.frombuffer(page.memo, "<i8").astype(np.int64)
        return self._take_in(page.url, page.relevance, page.targets, hosts)

    def fit_model(self, observed: int, pages: int) -> tuple[Floats, Scores]:
        """Distil the first `pages` pages; the model is the promise of each URL, at most 1."""
        source, target, _ = self.log.links(pages)
        n_urls = max(int(source.max(initial=-1)), int(target.max(initial=-1))) + 1
        _, number = np.unique(self._host.data[:n_urls], return_inverse=True)
        sites = Sites.by_host_or_none(source, target, number.astype(np.int64))
        # only what was fetched up to the last of the pages, whatever came since
        relevance = self.log.relevance(int(self._fetches.data[pages - 1]) if pages else 0, n_urls)
        distiller = Distiller(LinkGraph(source, target, sites.of_pages, relevance))
        promise = distiller.score_unfetched(distiller.distill())
        promise /= promise.max(initial=0.0) or 1.0
        best = np.zeros(n_urls)
        np.maximum.at(best, target, relevance[source])
        urls = np.unique(target)
        return promise, (urls, self._mixed(best[urls], promise[urls]))

    def use_model(self, model: Floats, pages: int) -> Scores:
        """Use another promise; URLs that later pages link to differ by these."""
        self._promise = model
        _, target, _ = self.log.links(self.log.n_pages)
        urls = np.unique(target[self.log.count_links(pages) :])
        return urls, self._of(urls)

    def _take_in(self, url: int, relevance: float, targets: Ints, hosts: Ints) -> Scores:
        self._host.grow(int(targets.max(initial=url)) + 1)
        self._host.data[url] = hosts[0]
        self._host.data[targets] = hosts[1:]
        self._best.grow(len(self._host))
        np.maximum.at(self._best.data, targets, relevance)
        self._fetches.extend([self.log.n_fetches])
        self.log.add_links(url, targets)
        urls = np.unique(targets)
        return urls, self._of(urls)

    def _of(self, urls: Ints) -> Floats:
        return self._scores(self._best.data[urls], urls)

    def _scores(self, best: Floats, urls: Ints) -> Floats:
        promise = np.zeros(len(urls))
        known = urls < len(self._promise)
        promise[known] = self._promise[urls[known]]
        return self._mixed(best, promise)

    def _mixed(self, best: Floats, promise: Floats) -> Floats:
        return np.round((1.0 - self.weight) * best + self.weight * promise, 9)

    def _hosts(self, urls: Sequence[str]) -> Ints:
        """Return a number for the host of each URL that is the same in every run."""
        found = []
        for url in urls:
            name = host(url)
            number = self._numbers.get(name)
            if number is None:
                digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                number = self._numbers[name] = int.from_bytes(digest, "little") >> 1
            found.append(number)
        return np.array(found, np.int64)
