"""The links of a crawl, as arrays (`CrawlLinks`) and as a graph of pages (`CrawlGraph`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from focuscrawl.crawl.state import is_redirect
from focuscrawl.distiller import LinkGraph, Sites, resolve_aliases
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.store import CrawlStore


@dataclass(frozen=True)
class CrawlLinks:
    """All URLs of a crawl and the links between the URLs, as arrays of indices.

    Attributes
    ----------
    names : the URLs, ordered by their ids in the store
    host : int64 (n_urls,), position in `host_names` of the host of each URL
    host_names : names of the hosts, with ports
    relevance : float64 (n_urls,), relevance; NaN for unfetched URLs
    fetched, judged : bool (n_urls,), fetched URLs; HTML pages without duplicates
    titles : titles of the pages
    pages : int64 (n_fetched,), fetched URLs in the order of the fetches
    source, target : int64 (n_links,), ends of each link, in the order found
    final_target : int64 (n_urls,), page of each URL after redirects, see `resolve_aliases`
    """

    names: list[str]
    host: Ints
    host_names: list[str]
    relevance: Floats
    fetched: Bools
    judged: Bools
    titles: list[str | None]
    pages: Ints
    source: Ints
    target: Ints
    final_target: Ints

    @classmethod
    def from_store(cls, store: CrawlStore) -> Self:
        """Read all URLs and links of a crawl; the crawl may be running."""
        history = History(store)
        # links first, as a running crawl may write meanwhile
        links = history.links()
        fetches = [*history.first_fetches()]
        urls = [*history.urls()]
        hosts = [*history.numbered_hosts()]
        n, ids = len(urls), _numbers(url.id for url in urls)
        page = _places(ids, (fetch.url for fetch in fetches))
        repeats = _places(ids, (fetch.duplicate_of for fetch in fetches))
        referrer = _places(ids, (url.referrer for url in urls))
        source, target = np.searchsorted(ids, links).T
        relevance, fetched = np.full(n, np.nan), np.zeros(n, np.bool_)
        relevance[page] = [fetch.relevance for fetch in fetches]
        fetched[page] = True
        judged = fetched.copy()
        judged[page] = [fetch.is_page for fetch in fetches]
        titles: list[str | None] = [None] * n
        for place, fetch in zip(page.tolist(), fetches, strict=True):
            titles[place] = fetch.title
        return cls(
            names=[url.url for url in urls],
            host=_places(_numbers(number for number, _ in hosts), (url.host for url in urls)),
            host_names=[name for _, name in hosts],
            relevance=relevance,
            fetched=fetched,
            judged=judged,
            titles=titles,
            pages=page,
            source=source,
            target=target,
            final_target=resolve_aliases(page, repeats, referrer, source),
        )

    def sites(self, rule: str | None = None) -> Sites:
        """Group URLs into sites by a rule of `SITE_RULES`; by default, a host is a site."""
        if rule is None:
            return Sites.by_host_or_none(self.source, self.final_target[self.target], self.host)
        return Sites.by_rule(rule, self.host, self.host_names)

    def graph(self, sites: Sites) -> LinkGraph:
        """Return the links as a `LinkGraph`; a link to a redirect leads to the final target."""
        target = self.final_target[self.target]
        return LinkGraph(self.source, target, sites.of_pages, self.relevance)


@dataclass(frozen=True)
class CrawlGraph:
    """The fetched pages of a crawl and the links between these pages.

    Attributes
    ----------
    starts : start pages, in the order fetched
    targets : fetched targets of the links of each fetched page, in document order
    """

    starts: list[str]
    targets: dict[str, list[str]]

    @classmethod
    def from_store(cls, store: CrawlStore) -> Self:
        """Read the fetched pages and links of a crawl from its store; redirects count as links."""
        history = History(store)
        links = history.links()
        fetches = [*history.first_fetches()]
        name = {fetch.url: fetch.url_text for fetch in fetches}
        targets: dict[str, list[str]] = {fetch.url_text: [] for fetch in fetches}
        redirects = {fetch.url for fetch in fetches if is_redirect(fetch.status, fetch.error)}
        for fetch in fetches:
            if fetch.referrer in redirects:
                targets[name[fetch.referrer]].append(fetch.url_text)
        inside = links[np.isin(links[:, 1], np.fromiter(name, np.int64))]
        for source, target in inside.tolist():
            targets[name[source]].append(name[target])
        starts = [each.url_text for each in fetches if each.depth == 0 and each.referrer is None]
        return cls(starts, targets)

    def links(self, url: str) -> list[str]:
        """Return the distinct fetched URLs that a page links to, except the page's own URL."""
        return [to for to in dict.fromkeys(self.targets.get(url, [])) if to != url]

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Return the list `urls` with None instead of each URL that was not fetched."""
        return [url if url in self.targets else None for url in urls]


def _numbers(column: Iterable[int | None]) -> Ints:
    """Return a column of ids; -1 for NULL."""
    return np.fromiter((-1 if each is None else each for each in column), np.int64)


def _places(ids: Ints, column: Iterable[int | None]) -> Ints:
    """Return the positions in `ids`, ascending, of the ids of a column; -1 for NULL."""
    numbers = _numbers(column)
    return np.where(numbers < 0, -1, np.searchsorted(ids, numbers))
