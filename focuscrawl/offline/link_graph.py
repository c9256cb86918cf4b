"""The links between the pages of a crawl: as arrays of all URLs, and by the URLs fetched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.crawl.state import is_redirect
from focuscrawl.distiller import LinkGraph, Sites, resolve_aliases
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.store import CrawlStore


@dataclass(frozen=True)
class CrawlLinks:
    """All URLs of a crawl and the links between them; URLs are numbered by their place here.

    Attributes
    ----------
    names : n URLs in the order of their numbers in the store
    host : int64 (n,), the place of each URL's host in `host_names`
    host_names : with their ports
    relevance : float64 (n,), NaN where nothing was fetched
    fetched, judged : bool (n,); judged are the HTML pages, each content once
    titles : of the pages
    pages : int64 (n_fetched,), the URLs fetched in their order
    source, target : int64 (n_links,), in the order the links were found
    final_target : int64 (n,), where a link to a URL leads in the end, see `resolve_aliases`
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
    def of(cls, store: CrawlStore) -> Self:
        """Read the links of a crawl, which may be running."""
        history = History(store)
        # what is read later holds what was written with the earlier: the crawl may be running
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
        """Return the sites by a rule of `RULES`; None: see `Sites.by_host_or_none`."""
        if rule is None:
            return Sites.by_host_or_none(self.source, self.final_target[self.target], self.host)
        return Sites.by_rule(rule, self.host, self.host_names)

    def graph(self, sites: Sites) -> LinkGraph:
        """Return the links as the distiller takes them, each to the page it leads to."""
        target = self.final_target[self.target]
        return LinkGraph(self.source, target, sites.of_pages, self.relevance)


@dataclass(frozen=True)
class CrawlGraph:
    """What a crawl has fetched, and how it hangs together.

    Attributes
    ----------
    starts : start pages, in the order fetched
    targets : for each page fetched the pages fetched that it links to, in document order
    """

    starts: list[str]
    targets: dict[str, list[str]]

    @classmethod
    def of(cls, store: CrawlStore) -> Self:
        """Read the links from the store of a crawl; redirects are links."""
        history = History(store)
        links = history.links()
        fetches = [*history.first_fetches()]
        name = {fetch.url: fetch.name for fetch in fetches}
        targets: dict[str, list[str]] = {fetch.name: [] for fetch in fetches}
        redirects = {fetch.url for fetch in fetches if is_redirect(fetch.status, fetch.error)}
        for fetch in fetches:
            if fetch.referrer in redirects:
                targets[name[fetch.referrer]].append(fetch.name)
        inside = links[np.isin(links[:, 1], np.fromiter(name, np.int64))]
        for source, target in inside.tolist():
            targets[name[source]].append(name[target])
        starts = [each.name for each in fetches if each.depth == 0 and each.referrer is None]
        return cls(starts, targets)

    def links(self, url: str) -> list[str]:
        """Return the pages that a page links to, itself left out, each once."""
        return [to for to in dict.fromkeys(self.targets.get(url, [])) if to != url]

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Return each URL that was fetched, None for the others."""
        return [url if url in self.targets else None for url in urls]


def _numbers(column: Iterable[int | None]) -> Ints:
    """Return a column of numbers; -1 for NULL."""
    return np.fromiter((-1 if each is None else each for each in column), np.int64)


def _places(ids: Ints, column: Iterable[int | None]) -> Ints:
    """Return where in `ids`, ascending, the numbers of a column are; -1 for NULL."""
    numbers = _numbers(column)
    return np.where(numbers < 0, -1, np.searchsorted(ids, numbers))
