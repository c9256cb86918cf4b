"""The strategy ``hubs``: hub scores as a part of the score of a URL (methods.md 7; F99 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.distiller import Distiller, LinkGraph, Sites
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.foundation.urls import host
from focuscrawl.strategies.base import Expansion, check_number
from focuscrawl.strategies.rescoring import LinkLog, RescoringStrategy

if TYPE_CHECKING:
    from focuscrawl.strategies.base import JudgedPage, Scores, StoredPage, StrategyContext


class Hubs(RescoringStrategy[Floats]):
    """Follow the links of relevant pages and of hubs first.

    The score of a URL v is (1 - w) R(u) + w p(v) with a weight w, where R(u) is the relevance of
    the most relevant page u that links to v. The value p(v) is the authority score that v would
    have if v were relevant, divided by the largest such score. The authority score is computed
    from the hubs of the last distillation (`focuscrawl.distiller.Distiller.score_unfetched`).

    Parameters
    ----------
    weight : w, in [0, 1]
    every, growth : fetches between two distillations: minimum, and share of all fetches
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
        self._fetches = GrowingArray(np.int64)  # fetches before each page
        self._host = GrowingArray(np.int64, fill=-1)  # hash of the host by URL id
        self._best = GrowingArray(np.float64)  # largest R(u) by URL id
        self._authority = np.zeros(0)  # expected authority score by URL id
        self._host_hashes: dict[str, int] = {}

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page` and their targets."""
        urls = [page.view.url, *(page.view.links.urls[i] for i in page.links.tolist())]
        hosts = self._hash_hosts(urls)
        changed, scores = self._add_page(page.url, page.relevance, page.targets, hosts)
        link_scores = self._scores(np.full(len(page.targets), page.relevance), page.targets)
        return Expansion(link_scores, changed, scores, memo=hosts.astype("<i8").tobytes())

    def restore_page(self, page: StoredPage) -> Scores:
        """Add the links of an earlier run."""
        assert page.memo is not None
        hosts = np.frombuffer(page.memo, "<i8").astype(np.int64)
        return self._add_page(page.url, page.relevance, page.targets, hosts)

    def fit_model(self, observed: int, pages: int) -> tuple[Floats, Scores]:
        """Compute expected authority scores from the links of the first `pages` pages."""
        source, target, _ = self.log.links(pages)
        n_urls = max(int(source.max(initial=-1)), int(target.max(initial=-1))) + 1
        _, number = np.unique(self._host.data[:n_urls], return_inverse=True)
        sites = Sites.by_host_or_none(source, target, number.astype(np.int64))
        # only fetches up to the last of these pages
        relevance = self.log.relevance(int(self._fetches.data[pages - 1]) if pages else 0, n_urls)
        distiller = Distiller(LinkGraph(source, target, sites.of_pages, relevance))
        authority = distiller.score_unfetched(distiller.distill())
        authority /= authority.max(initial=0.0) or 1.0
        best = np.zeros(n_urls)
        np.maximum.at(best, target, relevance[source])
        urls = np.unique(target)
        return authority, (urls, self._weighted_sum(best[urls], authority[urls]))

    def use_model(self, model: Floats, pages: int) -> Scores:
        """Use the authority scores in `model`; score links added after `pages` pages."""
        self._authority = model
        _, target, _ = self.log.links(self.log.n_pages)
        urls = np.unique(target[self.log.count_links(pages) :])
        return urls, self._scores(self._best.data[urls], urls)

    def _add_page(self, url: int, relevance: float, targets: Ints, hosts: Ints) -> Scores:
        self._host.grow(int(targets.max(initial=url)) + 1)
        self._host.data[url] = hosts[0]
        self._host.data[targets] = hosts[1:]
        self._best.grow(len(self._host))
        np.maximum.at(self._best.data, targets, relevance)
        self._fetches.extend([self.log.n_fetches])
        self.log.add_links(url, targets)
        urls = np.unique(targets)
        return urls, self._scores(self._best.data[urls], urls)

    def _scores(self, best: Floats, urls: Ints) -> Floats:
        authority = np.zeros(len(urls))
        known = urls < len(self._authority)
        authority[known] = self._authority[urls[known]]
        return self._weighted_sum(best, authority)

    def _weighted_sum(self, best: Floats, authority: Floats) -> Floats:
        return np.round((1.0 - self.weight) * best + self.weight * authority, 9)

    def _hash_hosts(self, urls: Sequence[str]) -> Ints:
        """Return a hash of the host of each URL that is the same in every run."""
        hashes = []
        for url in urls:
            name = host(url)
            hashed = self._host_hashes.get(name)
            if hashed is None:
                digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                hashed = self._host_hashes[name] = int.from_bytes(digest, "little") >> 1
            hashes.append(hashed)
        return np.array(hashes, np.int64)
