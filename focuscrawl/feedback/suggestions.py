"""Choosing pages of a crawl to ask a person about: uncertain ones; or doubtful, missed, hubs."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.critic.corpus import read_known
from focuscrawl.errors import UserError
from focuscrawl.feedback.doubt import by_doubt
from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.urls import host
from focuscrawl.offline.link_graph import CrawlLinks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.protocol import Web

DEFAULT_KIND = "uncertain"  # what is asked about unless told otherwise
_BELIEF = 2.0  # neighbours that the crawl's own mean counts for
_LEAST = 2  # neighbours that can contradict a judgement
_READ = 10  # pages for a question, of which it is chosen


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


class _Crawl(NamedTuple):
    """What there is to choose from, for `n` questions; parameters of `suggest`."""

    store: CrawlStore
    webs: Sequence[Web]
    known: Collection[str]
    n: int
    pages: _Pages


def suggest(
    store: CrawlStore,
    webs: Sequence[Web],
    n: int = 20,
    *,
    known: Collection[str] = (),
    kinds: Sequence[str] = (DEFAULT_KIND,),
) -> list[Suggestion]:
    """Choose pages to judge, in turn of each kind; the same crawl has the same ones.

    Of pages with one title on one host, as versions of a page are, only one is asked about.

    Parameters
    ----------
    store : of the crawl, which may be running
    webs : where its pages are read again, in the order to look for one
    n : how many, at most
    known : URLs of pages whose verdict is known, which are not asked about
    kinds : some of `KINDS`

    Raises
    ------
    UserError
        The crawl has no page to judge.
    """
    pages = _read(store)
    if not len(pages.url):
        raise UserError(f"{store.where}: no HTML page was fetched yet: there is nothing to judge")
    crawl = _Crawl(store, webs, known, n, pages)
    orders = [KINDS[kind](crawl) for kind in kinds]
    chosen, seen = list[Suggestion](), _Seen(pages, known)
    while orders and len(chosen) < n:
        for order in list(orders):
            for page in order:
                if seen.adds(page.url, page.title):
                    chosen.append(page)
                    break
            else:
                orders.remove(order)
            if len(chosen) == n:
                break
    return chosen


class _Seen:
    """Pages asked about or known before, other versions of them included."""

    def __init__(self, pages: _Pages, known: Collection[str]) -> None:
        self._urls = set(known)
        titled = zip(pages.names, pages.titles, strict=True)
        self._titles = {(host(url), title) for url, title in titled if title and url in known}

    def adds(self, url: str, title: str) -> bool:
        """Add a page; tell whether it is new."""
        if url in self._urls or (host(url), title) in self._titles:
            return False
        self._urls.add(url)
        if title:
            self._titles.add((host(url), title))
        return True


def _uncertain(crawl: _Crawl) -> Iterator[Suggestion]:
    """Pages that the critic is unsure of, unlike each other and those that were judged.

    Only the pages nearest to R = 1/2 are read; of equals, those that their neighbours contradict
    most.
    """
    pages = crawl.pages
    away = np.abs(pages.relevance - RELEVANT)
    against = -np.abs(pages.around - pages.relevance)
    order = np.lexsort((against, away)).tolist()
    seen = _Seen(pages, crawl.known)
    new = (i for i in order if seen.adds(pages.names[i], pages.titles[i]))
    near = [*islice(new, _READ * crawl.n)]
    names = [pages.names[i] for i in near]
    read = read_known(crawl.webs, [*names, *crawl.known])
    near = [i for i in near if pages.names[i] in read]
    bags = [read[pages.names[i]].bag for i in near]
    judged = [read[url].bag for url in sorted(crawl.known) if url in read]
    for place in by_doubt(pages.relevance[near], bags, judged):
        i = near[place]
        yield _of(pages, i, DEFAULT_KIND, f"R {pages.relevance[i]:.2f}")


def _false_positives(crawl: _Crawl) -> Iterator[Suggestion]:
    """Relevant pages whose neighbours are the least relevant."""
    pages = crawl.pages
    doubtful = np.flatnonzero((pages.relevance > RELEVANT) & (pages.neighbours >= _LEAST))
    for i in doubtful[np.argsort(pages.around[doubtful], kind="stable")].tolist():
        yield _of(pages, i, "doubtful", _neighbourhood(pages, i))


def _false_negatives(crawl: _Crawl) -> Iterator[Suggestion]:
    """Irrelevant pages whose neighbours are the most relevant [F99: misclassified hubs]."""
    pages = crawl.pages
    missed = np.flatnonzero((pages.relevance <= RELEVANT) & (pages.neighbours >= _LEAST))
    for i in missed[np.argsort(-pages.around[missed], kind="stable")].tolist():
        yield _of(pages, i, "missed", _neighbourhood(pages, i))


def _distilled(crawl: _Crawl, *, score: str) -> Iterator[Suggestion]:
    """Hubs, or authorities, the best first."""
    with needs("report", "asking about hubs and authorities"):
        from focuscrawl.report.prestige import Distillation  # noqa: PLC0415
    try:
        found = Distillation.of(crawl.store)
    except UserError:
        return  # no links between relevant pages
    pages = crawl.pages
    place = {name: i for i, name in enumerate(pages.names)}
    for rank, url in enumerate(found.best(score, len(place))["url"], 1):
        if url in place:
            yield _of(pages, place[url], score, f"number {rank}")


#: kinds of suggestions, in the order in which they take turns
KINDS: dict[str, Callable[[_Crawl], Iterator[Suggestion]]] = {
    DEFAULT_KIND: _uncertain,
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
