"""Choosing pages of a crawl to ask a person about: uncertain, doubtful, missed, hubs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.urls import host
from focuscrawl.offline.link_graph import CrawlLinks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.store import CrawlStore

_BELIEF = 2.0  # neighbours that the crawl's own mean counts for
_LEAST = 2  # neighbours that can contradict a judgement


class Suggestion(NamedTuple):
    """A page to judge.

    Attributes
    ----------
    url, title, relevance : of the page, R by the present critic
    kind : of `KINDS`, why it is worth asking
    reason : the same in figures
    """

    url: str
    title: str
    relevance: float
    kind: str
    reason: str


class _Pages(NamedTuple):
    """Judged pages in the order fetched; duplicates and what is no HTML are left out."""

    url: Ints
    names: list[str]
    titles: list[str]
    relevance: Floats
    around: Floats  # mean R of fetched neighbours, shrunk to that of all
    neighbours: Ints


def suggest(
    store: CrawlStore,
    n: int = 20,
    *,
    known: Collection[str] = (),
    kinds: Sequence[str] | None = None,
) -> list[Suggestion]:
    """Choose pages to judge, in turn of each kind; the same crawl has the same ones.

    Of pages with one title on one host, as versions of a page are, only one is asked about.

    Parameters
    ----------
    store : of the crawl, which may be running
    n : how many, at most
    known : URLs that were judged before
    kinds : some of `KINDS`; None: all

    Raises
    ------
    UserError
        The crawl has no page to judge.
    """
    pages = _read(store)
    if not len(pages.url):
        raise UserError(f"{store.where}: no HTML page was fetched yet: there is nothing to judge")
    orders = [KINDS[kind](store, pages) for kind in (kinds or KINDS)]
    asked, chosen = set(known), list[Suggestion]()
    titled = zip(pages.names, pages.titles, strict=True)
    seen = {(host(url), title) for url, title in titled if title and url in asked}
    while orders and len(chosen) < n:
        for order in list(orders):
            for page in order:
                same = (host(page.url), page.title)
                if page.url not in asked and not (page.title and same in seen):
                    asked.add(page.url)
                    seen.add(same)
                    chosen.append(page)
                    break
            else:
                orders.remove(order)
            if len(chosen) == n:
                break
    return chosen


def _uncertain(store: CrawlStore, pages: _Pages) -> Iterator[Suggestion]:
    """Pages nearest to R = 1/2; of equals, those that their neighbours contradict most."""
    away = np.abs(pages.relevance - RELEVANT)
    against = -np.abs(pages.around - pages.relevance)
    for i in np.lexsort((against, away)).tolist():
        yield _of(pages, i, "uncertain", f"R {pages.relevance[i]:.2f}")


def _false_positives(store: CrawlStore, pages: _Pages) -> Iterator[Suggestion]:
    """Relevant pages whose neighbours are the least relevant."""
    doubtful = np.flatnonzero((pages.relevance > RELEVANT) & (pages.neighbours >= _LEAST))
    for i in doubtful[np.argsort(pages.around[doubtful], kind="stable")].tolist():
        yield _of(pages, i, "doubtful", _neighbourhood(pages, i))


def _false_negatives(store: CrawlStore, pages: _Pages) -> Iterator[Suggestion]:
    """Irrelevant pages whose neighbours are the most relevant [F99: misclassified hubs]."""
    missed = np.flatnonzero((pages.relevance <= RELEVANT) & (pages.neighbours >= _LEAST))
    for i in missed[np.argsort(-pages.around[missed], kind="stable")].tolist():
        yield _of(pages, i, "missed", _neighbourhood(pages, i))


def _distilled(store: CrawlStore, pages: _Pages, *, score: str) -> Iterator[Suggestion]:
    """Hubs, or authorities, the best first."""
    with needs("report", "asking about hubs and authorities"):
        from focuscrawl.report.prestige import Distillation  # noqa: PLC0415
    try:
        found = Distillation.of(store)
    except UserError:
        return  # no links between relevant pages
    n = len(pages.url)
    place = {name: i for i, name in enumerate(pages.names)}
    for rank, url in enumerate(found.best(score, n)["url"], 1):
        if url in place:
            yield _of(pages, place[url], score, f"number {rank}")


#: kinds of suggestions, in the order in which they take turns
KINDS: dict[str, Callable[[CrawlStore, _Pages], Iterator[Suggestion]]] = {
    "uncertain": _uncertain,
    "doubtful": _false_positives,
    "missed": _false_negatives,
    "hub": partial(_distilled, score="hub"),
    "authority": partial(_distilled, score="authority"),
}


def _of(pages: _Pages, i: int, kind: str, reason: str) -> Suggestion:
    relevance = float(pages.relevance[i])
    return Suggestion(pages.names[i], pages.titles[i], relevance, kind, reason)


def _neighbourhood(pages: _Pages, i: int) -> str:
    return f"neighbours' R {pages.around[i]:.2f} ({pages.neighbours[i]} pages)"


def _read(store: CrawlStore) -> _Pages:
    crawl = CrawlLinks.of(store)
    url = crawl.pages[crawl.judged[crawl.pages]]
    relevance = crawl.relevance[url]
    place = np.full(len(crawl.names), -1)
    place[url] = np.arange(len(url))
    ends = np.sort(place[np.stack([crawl.source, crawl.target], axis=1)], axis=1)
    ends = ends[(ends[:, 0] >= 0) & (ends[:, 0] != ends[:, 1])]
    one, other = np.unique(ends, axis=0).T  # a pair counts once, whoever links
    one, other = np.concatenate([one, other]), np.concatenate([other, one])
    n = len(url)
    neighbours = np.bincount(one, minlength=n)
    mean = float(relevance.mean()) if n else 0.0
    sums = np.bincount(one, relevance[other], minlength=n)
    return _Pages(
        url=url,
        names=[crawl.names[each] for each in url.tolist()],
        titles=[crawl.titles[each] or "" for each in url.tolist()],
        relevance=relevance,
        around=(sums + _BELIEF * mean) / (neighbours + _BELIEF),
        neighbours=neighbours,
    )
