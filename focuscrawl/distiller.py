"""Hubs and authorities by relevance-weighted HITS (methods 7; F99 section 3.2): arrays only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from tldextract import TLDExtract

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from focuscrawl.foundation.arrays import Floats, Ints


AUTHORITY_THRESHOLD = 0.2  # rho: the relevance above which a page can be an authority
#: a site is a host; a registered domain; every page is a site of its own
SITE_RULES = ("host", "domain", "none")
_MAX_DOUBLINGS = 5  # doublings: longer chains of redirects than 32 are loops


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """Pages by their numbers, and the links between them.

    Attributes
    ----------
    source, target : int64 (n_links,), the pages a link leads from, all fetched, and to; a link
        that is there several times counts once
    site : int64 (n_pages,), the site of each page, from 0 (`Sites.of_pages`)
    relevance : float64 (n_pages,), R in [0, 1]; NaN for a page that was not fetched
    """

    source: Ints
    target: Ints
    site: Ints
    relevance: Floats

    @property
    def n_pages(self) -> int:
        """Pages, fetched or not."""
        return len(self.site)

    def off_site_links(self) -> tuple[Ints, Ints]:
        """Return the distinct links between different sites, by source, then by target."""
        off = self.site[self.source] != self.site[self.target]
        links = np.sort(self.source[off] * self.n_pages + self.target[off])
        links = links[np.diff(links, prepend=-1) > 0]  # np.unique takes ten times as long
        source, target = np.divmod(links, max(self.n_pages, 1))
        return source, target


@dataclass(frozen=True, slots=True)
class HubScores:
    """What a distillation found.

    Attributes
    ----------
    hubs, authorities : float64 (n_pages,), each of length 1 (L2), or 0 where there are none
    rounds : how often the scores were passed along the links
    stable : whether the order at the top had settled by then
    """

    hubs: Floats
    authorities: Floats
    rounds: int
    stable: bool


class Distiller:
    """Hubs and authorities among the pages of a graph.

    a(v) = R(v) * sum of w(u,v) * h(u) over the off-site links into v, if v was fetched and
    R(v) > rho; h(u) = R(u) * sum of w'(u,v) * a(v) over the off-site links of u to these. So the
    weight of a link is E_F(u,v) = R(v) forward and E_B(u,v) = R(u) backward [F99 3.2]: no
    prestige leaks from relevant hubs to irrelevant pages, nor back.

    Damping [Bharat & Henzinger 1998]: k links from one site to one page weigh 1/k each (w), so
    that a site has one voice about a page; l links from one page to authorities of one site
    weigh 1/l each on the way back (w'), so that a site is praised once by a page. Weights of 1/k
    both ways would count k links for less than one: k hubs of a k-th each give a k-th.

    R(v) of a page that was not fetched is unknown, and it gives nothing to the pages that link
    to it: a hub is a hub by what is known to be relevant. What such a page has been given is
    its `score_unfetched`.

    Parameters
    ----------
    graph : the links
    threshold : rho; hubs have none
    damp : whether links are damped
    """

    def __init__(
        self, graph: LinkGraph, *, threshold: float = AUTHORITY_THRESHOLD, damp: bool = True
    ) -> None:
        self._relevance = graph.relevance
        source, target = graph.off_site_links()
        given = np.ones(len(source))
        if damp:
            given = _shares(graph.site[source], target)
        self._unknown = np.flatnonzero(np.isnan(graph.relevance[target]))
        self._source, self._target, self._given = source, target, given
        known = np.flatnonzero(graph.relevance[target] > threshold)
        source, target, given = source[known], target[known], given[known]
        taken = np.ones(len(source))
        if damp:
            taken = _shares(source, graph.site[target])
        #: pages with links to authorities, and the authorities, ascending
        self._hubs, row = _compact(source, graph.n_pages)
        self._authorities, column = _compact(target, graph.n_pages)
        from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, and few crawls distil

        shape = len(self._hubs), len(self._authorities)
        forward = given * graph.relevance[target]
        backward = taken * graph.relevance[source]
        self._forward = csr_array((forward, (column, row)), shape=shape[::-1])
        self._backward = csr_array((backward, (row, column)), shape=shape)

    def distill(
        self,
        start: HubScores | None = None,
        *,
        top: int = 100,
        steady: int = 3,
        rounds: int = 200,
    ) -> HubScores:
        """Pass scores along the links until the order of the best no longer changes.

        Parameters
        ----------
        start : scores of an earlier distillation, when there were fewer pages and links: fewer
            rounds are needed from there. Every page starts with at least their mean, since what
            starts with 0 would stay 0
        top : how many of the best hubs, and authorities, have to keep their order
        steady : for how many rounds
        rounds : at most
        """
        hubs = np.ones(len(self._hubs))
        if start is not None and start.hubs.any():
            known = self._hubs[self._hubs < len(start.hubs)]
            hubs = np.full(len(self._hubs), start.hubs.mean())
            hubs[: len(known)] += start.hubs[known]
        authorities = np.zeros(len(self._authorities))
        order: tuple[bytes, bytes] | None = None
        same = done = 0
        while done < rounds and same < steady:
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
            stable=same >= steady,
        )

    def score_unfetched(self, scores: HubScores, hubs: int | None = None) -> Floats:
        """Return what pages that were not fetched are given by hubs.

        It is the authority score that a page would have, before it is scaled, if R(v) = 1.

        Parameters
        ----------
        hubs : only by so many of the best; None: by all

        Returns
        -------
        float64 (n_pages,), 0 for pages that were fetched
        """
        giving = scores.hubs
        if hubs is not None:
            chosen = top_pages(giving, hubs)
            giving = self._spread(chosen, giving[chosen])
        source, target = self._source[self._unknown], self._target[self._unknown]
        given = self._given[self._unknown] * giving[source]
        promised = np.bincount(target, weights=given, minlength=len(self._relevance))
        return promised.astype(np.float64, copy=False)

    def _spread(self, pages: Ints, values: Floats) -> Floats:
        spread = np.zeros(len(self._relevance))
        spread[pages] = values
        return spread


def top_pages(scores: Floats, n: int) -> Ints:
    """Return the pages with the `n` highest scores above 0, highest first.

    Among equals, to twelve digits, the page found first comes first: what is added up in
    another order differs in the last ones.
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
    """The sites of a crawl's pages by one rule.

    Attributes
    ----------
    rule : one of `SITE_RULES`
    of_pages : int64 (n_pages,), the number of each page's site
    """

    rule: str
    of_pages: Ints

    @classmethod
    def by_rule(cls, rule: str, host: Ints, names: Sequence[str]) -> Self:
        """Tell sites apart by `rule`.

        Parameters
        ----------
        host : int64 (n_pages,), the number of each page's host
        names : of the hosts, with their ports
        """
        if rule == "none":
            return cls(rule, np.arange(len(host)))
        if rule == "domain":
            domains: dict[str, int] = {}
            number = [domains.setdefault(registered_domain(name), len(domains)) for name in names]
            return cls(rule, np.array(number, np.int64)[host])
        return cls(rule, host)

    @classmethod
    def by_host_or_none(cls, source: Ints, target: Ints, host: Ints) -> Self:
        """Return hosts as sites, or, if every link stays on its host, no rule."""
        rule = "host" if (host[source] != host[target]).any() else "none"
        return cls.by_rule(rule, host, ())


@cache
def registered_domain(host: str) -> str:
    """Return the part of a host's name that somebody has registered, the host if there is none.

    By the public suffix list that comes with `tldextract`, without the network.
    Private suffixes count: ``github.io`` is no registered domain.

    >>> registered_domain("www.ics.uci.edu"), registered_domain("jo.github.io:8080")
    ('uci.edu', 'jo.github.io')
    """
    found = _suffixes()(host)
    return f"{found.domain}.{found.suffix}" if found.domain and found.suffix else host


@cache
def _suffixes() -> TLDExtract:
    return TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)


def resolve_aliases(fetched: Ints, duplicate_of: Ints, referrer: Ints, source: Ints) -> Ints:
    """Return for each URL its alias: the URL whose page it repeats or redirects to.

    For a duplicate that is the page it repeats. For a redirect it is where it leads, if nothing
    had linked there before: the crawl then keeps the redirect as the referrer of its target, and
    only a redirect is the referrer of anything without having a link.

    Parameters
    ----------
    fetched : int64 (n_fetched,), numbers of the URLs fetched
    duplicate_of : int64 (n_fetched,), the page each repeats; -1: none
    referrer : int64 (n_urls,), where each URL was first found; -1: nowhere
    source : int64 (n_links,), URLs that links were found on

    Returns
    -------
    int64 (n_urls,); a URL's own number where nothing stands for it
    """
    stands = np.arange(len(referrer))
    redirects = np.zeros(len(referrer), np.bool_)
    redirects[fetched] = True
    redirects[source] = False
    found = np.flatnonzero(referrer >= 0)[::-1]  # the first target of a redirect comes last, wins
    found = found[redirects[referrer[found]]]
    stands[referrer[found]] = found
    repeats = duplicate_of >= 0
    stands[fetched[repeats]] = duplicate_of[repeats]
    for _ in range(_MAX_DOUBLINGS):
        stands = stands[stands]
    return stands


def _unit(passed_on: object) -> Floats:
    scores = np.asarray(passed_on, np.float64)
    length = float(np.sqrt(scores @ scores))
    return scores / length if length else scores


def _shares(first: Ints, second: Ints) -> Floats:
    """Return 1/k for each of k equal pairs of numbers from 0."""
    pairs = first * (second.max(initial=0) + 1) + second
    order = np.argsort(pairs)
    pairs = pairs[order]
    new = np.diff(pairs, prepend=-1) != 0
    sizes = np.diff(np.flatnonzero(new), append=len(pairs))
    shares = np.empty(len(pairs))
    # not np.repeat: it keeps other threads, and so the crawl, from running
    shares[order] = (1.0 / sizes)[np.cumsum(new) - 1]
    return shares


def _compact(numbers: Ints, n: int) -> tuple[Ints, Ints]:
    """Return the distinct numbers, ascending, and which of them each is; all are below `n`."""
    there = np.zeros(n, np.bool_)
    there[numbers] = True
    place = np.cumsum(there) - 1
    return np.flatnonzero(there), place[numbers]
