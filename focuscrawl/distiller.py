"""Hubs and authorities by relevance-weighted HITS (methods.md 7; F99 section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Self

import numpy as np
from tldextract import TLDExtract

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats, Ints


AUTHORITY_THRESHOLD = 0.2  # rho: relevance above which a page can be an authority
#: a site is a host, a registered domain or, with "none", a single page
SITE_RULES = ("host", "domain", "none")
_MAX_DOUBLINGS = 5  # chains of more than 2^5 redirects are loops


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """A graph of pages and the links between the pages.

    Attributes
    ----------
    source, target : int64 (n_links,), page ids of the ends of each link; sources are fetched
        pages, and repeated links count once
    site : int64 (n_pages,), site id of each page (`Sites.of_pages`)
    relevance : float64 (n_pages,), relevance in [0, 1]; NaN for unfetched pages
    """

    source: Ints
    target: Ints
    site: Ints
    relevance: Floats

    @property
    def n_pages(self) -> int:
        """Number of fetched and unfetched pages in the graph."""
        return len(self.site)

    def off_site_links(self) -> tuple[Ints, Ints]:
        """Return the distinct links between different sites, sorted by source and target page."""
        off = self.site[self.source] != self.site[self.target]
        links = np.sort(self.source[off] * self.n_pages + self.target[off])
        links = links[np.diff(links, prepend=-1) > 0]  # np.unique takes ten times as long
        source, target = np.divmod(links, max(self.n_pages, 1))
        return source, target


@dataclass(frozen=True, slots=True)
class HubScores:
    """Hub and authority scores of pages.

    Attributes
    ----------
    hubs, authorities : float64 (n_pages,), scores with the L2 norm 1, or all 0
    rounds : number of iterations
    stable : whether the order of the top pages converged
    """

    hubs: Floats
    authorities: Floats
    rounds: int
    stable: bool


class Distiller:
    """Computes hub and authority scores of the pages of a graph.

    A fetched page u has a hub score h(u). A fetched page v with a relevance R(v) above rho has an
    authority score a(v). The scores are sums over off-site links [F99 3.2]::

        a(v) = R(v) * sum of w(u, v) * h(u)
        h(u) = R(u) * sum of w'(u, v) * a(v)

    Relevant hubs do not raise the scores of irrelevant pages, and irrelevant pages do not raise
    the scores of relevant authorities. Damping [Bharat & Henzinger 1998] limits the influence of a
    site. If k links lead from one site to the same page, each of the k links has the weight w =
    1/k in the authority score. If l links lead from a page to authorities on the same site, each
    of the l links has the weight w' = 1/l in the hub score. Unfetched pages do not raise the
    scores of hubs; see `score_unfetched`.

    Parameters
    ----------
    threshold : rho, for authorities
    damp : whether to damp links
    """

    def __init__(
        self, graph: LinkGraph, *, threshold: float = AUTHORITY_THRESHOLD, damp: bool = True
    ) -> None:
        self._relevance = graph.relevance
        source, target = graph.off_site_links()
        weight = np.ones(len(source))
        if damp:
            weight = _shares(graph.site[source], target)
        self._to_unfetched = np.flatnonzero(np.isnan(graph.relevance[target]))
        self._source, self._target, self._weight = source, target, weight
        known = np.flatnonzero(graph.relevance[target] > threshold)
        source, target, weight = source[known], target[known], weight[known]
        backward_weight = np.ones(len(source))
        if damp:
            backward_weight = _shares(source, graph.site[target])
        # pages with links to authorities, and the authorities, ascending
        self._hubs, row = _compact(source, graph.n_pages)
        self._authorities, column = _compact(target, graph.n_pages)
        from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, and few crawls distil

        shape = len(self._hubs), len(self._authorities)
        forward = weight * graph.relevance[target]
        backward = backward_weight * graph.relevance[source]
        self._forward = csr_array((forward, (column, row)), shape=shape[::-1])
        self._backward = csr_array((backward, (row, column)), shape=shape)

    def distill(
        self,
        start: HubScores | None = None,
        *,
        top: int = 100,
        stable_rounds: int = 3,
        rounds: int = 200,
    ) -> HubScores:
        """Iterate the scores until the order of the top pages no longer changes.

        Parameters
        ----------
        start : scores of an earlier distillation with fewer pages and links, to save iterations;
            every page starts with at least the mean score, since a score of 0 would stay 0
        top : number of top hubs and of top authorities whose order must not change
        stable_rounds : number of iterations without a change
        """
        hubs = np.ones(len(self._hubs))
        if start is not None and start.hubs.any():
            known = self._hubs[self._hubs < len(start.hubs)]
            hubs = np.full(len(self._hubs), start.hubs.mean())
            hubs[: len(known)] += start.hubs[known]
        authorities = np.zeros(len(self._authorities))
        order: tuple[bytes, bytes] | None = None
        same = done = 0
        while done < rounds and same < stable_rounds:
            authorities = _unit(self._forward @ hubs)
            hubs = _unit(self._backward @ authorities)
            done += 1
            before, order = (
                order,
                (top_pages(hubs, top).tobytes(), top_pages(authorities, top).tobytes()),
            )
            same = same + 1 if order == before else 0
        return HubScores(
            hubs=self._spread(self._hubs, hubs),
            authorities=self._spread(self._authorities, authorities),
            rounds=done,
            stable=same >= stable_rounds,
        )

    def score_unfetched(self, scores: HubScores, hubs: int | None = None) -> Floats:
        """Return the authority scores that unfetched pages would have if they were relevant.

        The result is the authority score, before the scaling, that a page would have with the
        relevance 1.

        Parameters
        ----------
        hubs : number of top hubs to use; None: all hubs

        Returns
        -------
        float64 (n_pages,), 0 for fetched pages
        """
        hub_scores = scores.hubs
        if hubs is not None:
            chosen = top_pages(hub_scores, hubs)
            hub_scores = self._spread(chosen, hub_scores[chosen])
        source, target = self._source[self._to_unfetched], self._target[self._to_unfetched]
        passed_on = self._weight[self._to_unfetched] * hub_scores[source]
        expected = np.bincount(target, weights=passed_on, minlength=len(self._relevance))
        return expected.astype(np.float64, copy=False)

    def _spread(self, pages: Ints, values: Floats) -> Floats:
        spread = np.zeros(len(self._relevance))
        spread[pages] = values
        return spread


def top_pages(scores: Floats, n: int) -> Ints:
    """Return the pages with the `n` highest scores above 0, the highest score first.

    Pages whose scores have the same first twelve digits are sorted in the order found, because
    further digits depend on the order of summation.
    """
    if n < 1:
        return np.zeros(0, np.int64)
    above = 0.0
    if len(scores) > n:
        above = max(0.0, float(np.partition(scores, -n)[-n]) * (1.0 - 1e-9))
    pages = np.flatnonzero(scores >= above if above else scores > 0.0)
    keys = np.round(scores[pages], 12)
    return pages[np.lexsort((pages, -keys))][:n]


@dataclass(frozen=True, slots=True)
class Sites:
    """Assignment of the pages of a crawl to sites.

    Attributes
    ----------
    rule : one of `SITE_RULES`
    of_pages : int64 (n_pages,), site id of each page
    """

    rule: str
    of_pages: Ints

    @classmethod
    def by_rule(cls, rule: str, host: Ints, names: Sequence[str]) -> Self:
        """Assign pages to sites by the given `rule`.

        Parameters
        ----------
        rule : one of `SITE_RULES`
        host : int64 (n_pages,), host id of each page
        names : names of the hosts, with ports
        """
        if rule == "none":
            return cls(rule, np.arange(len(host)))
        if rule == "domain":
            domains: dict[str, int] = {}
            ids = [domains.setdefault(registered_domain(name), len(domains)) for name in names]
            return cls(rule, np.array(ids, np.int64)[host])
        return cls(rule, host)

    @classmethod
    def by_host_or_none(cls, source: Ints, target: Ints, host: Ints) -> Self:
        """Use hosts as sites; if no link leads to another host, use single pages as sites."""
        rule = "host" if (host[source] != host[target]).any() else "none"
        return cls.by_rule(rule, host, ())


@cache
def registered_domain(host: str) -> str:
    """Return the registered domain of a host, or the host itself if its suffix is not public.

    The public suffix list of `tldextract` is used offline, including private suffixes such as
    ``github.io``.

    >>> registered_domain("www.ics.uci.edu"), registered_domain("jo.github.io:8080")
    ('uci.edu', 'jo.github.io')
    """
    found = _suffixes()(host)
    return f"{found.domain}.{found.suffix}" if found.domain and found.suffix else host


@cache
def _suffixes() -> TLDExtract:
    return TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)


def resolve_aliases(fetched: Ints, duplicate_of: Ints, referrer: Ints, source: Ints) -> Ints:
    """Return for each URL the id of the URL that it duplicates or redirects to, or its own id.

    The store knows the target of a redirect only if the target was first found by this redirect.
    In this case, the redirect is the referrer of the target. A referrer is recognised as a
    redirect because the referrer has no links.

    Parameters
    ----------
    fetched : int64 (n_fetched,), ids of the fetched URLs
    duplicate_of : int64 (n_fetched,), id of the original of each duplicate; -1: no duplicate
    referrer : int64 (n_urls,), id of the URL where each URL was first found; -1: none
    source : int64 (n_links,), ids of the pages of all links

    Returns
    -------
    int64 (n_urls,); the id of the URL itself for a page that is no duplicate or redirect
    """
    resolved = np.arange(len(referrer))
    redirects = np.zeros(len(referrer), np.bool_)
    redirects[fetched] = True
    redirects[source] = False
    found = np.flatnonzero(referrer >= 0)[::-1]  # reversed, so that the first target is kept
    found = found[redirects[referrer[found]]]
    resolved[referrer[found]] = found
    repeats = duplicate_of >= 0
    resolved[fetched[repeats]] = duplicate_of[repeats]
    for _ in range(_MAX_DOUBLINGS):
        resolved = resolved[resolved]
    return resolved


def _unit(unscaled: object) -> Floats:
    scores = np.asarray(unscaled, np.float64)
    length = float(np.sqrt(scores @ scores))
    return scores / length if length else scores


def _shares(first: Ints, second: Ints) -> Floats:
    """Return 1/k for each of k equal pairs of ids."""
    pairs = first * (second.max(initial=0) + 1) + second
    order = np.argsort(pairs)
    pairs = pairs[order]
    new = np.diff(pairs, prepend=-1) != 0
    sizes = np.diff(np.flatnonzero(new), append=len(pairs))
    shares = np.empty(len(pairs))
    # not np.repeat, which would block other threads and so the crawl
    shares[order] = (1.0 / sizes)[np.cumsum(new) - 1]
    return shares


def _compact(ids: Ints, n: int) -> tuple[Ints, Ints]:
    """Return the distinct ids (all below `n`), ascending, and the position of each of `ids`."""
    present = np.zeros(n, np.bool_)
    present[ids] = True
    position = np.cumsum(present) - 1
    return np.flatnonzero(present), position[ids]
