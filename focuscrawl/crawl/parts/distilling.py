"""Every so many fetches, what the top hubs link to comes first (METHODS 7; F99 section 3.3)."""

from __future__ import annotations

import math
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.crawl.part import Part
from focuscrawl.distiller import RULES, Distiller, LinkGraph, Scores, Sites, best, stand_ins
from focuscrawl.foundation.arrays import GrowingArray
from focuscrawl.store import VisitRecord
from focuscrawl.store.history import History
from focuscrawl.store.schema import QUEUED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit
    from focuscrawl.store import RevisitRow

#: what may be a site, by `focuscrawl.distiller.Sites`; ``auto``: a host, or, as long as every link
#: stays on its host, a page
SITES = ("auto", *RULES)
#: kind of the event that tells of a distillation
DISTILLED = "distilled"

_LAG = 5  # fetches of a replay that go on while it distils
_HUBS = 10  # whose targets are raised
_SHARE = 5  # at most so manieth of all fetches are of targets raised


class DistilledGraph(NamedTuple):
    """What is distilled: pages fetched, links, and the hosts and referrers of all URLs."""

    page: NDArray[np.int64]
    relevance: NDArray[np.float64]
    repeats: NDArray[np.int64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    host: NDArray[np.int64]
    referrer: NDArray[np.int64]


class Distilled(NamedTuple):
    """What came of it.

    Attributes
    ----------
    hubs : the top ones, the best first
    promised : int64 (n,), URLs never fetched that these link to, the best first
    """

    scores: Scores
    hubs: list[int]
    promised: NDArray[np.int64]
    links: int
    rule: str

    def in_words(self, raised: int, of: int) -> str:
        """Return the detail of the event, for so many URLs raised."""
        return (
            f"{raised} of {of} unfetched targets of the top {_HUBS} hubs raised "
            f"({self.links} links, sites: {self.rule}, {self.scores.rounds} rounds)"
        )


def distil(
    graph: DistilledGraph, sites: str, host_names: Sequence[str], start: Scores | None = None
) -> Distilled:
    """Run the distiller.

    Parameters
    ----------
    sites : one of `SITES`
    host_names : for the rule ``domain``
    start : scores to begin from
    """
    source, host = graph.source, graph.host
    stands = stand_ins(graph.page, graph.repeats, graph.referrer, source)
    target = stands[graph.target]
    if sites == "auto":
        found = Sites.fitting(source, target, host)
    else:
        found = Sites.by(sites, host, host_names)
    relevance = np.full(len(host), np.nan)
    relevance[graph.page] = graph.relevance
    distiller = Distiller(LinkGraph(source, target, found.of_pages, relevance))
    scores = distiller.distill(start)
    hubs = best(scores.hubs, _HUBS).tolist()
    promised = best(distiller.promise(scores, _HUBS), len(host))
    return Distilled(scores, hubs, promised, len(source), found.rule)


def raised_at_once(every: int) -> int:
    """Return how many URLs a distillation may raise: a fifth of the fetches until the next."""
    return max(1, every // _SHARE)


class Distilling(Part):
    """Runs the distiller off the event loop, and raises what the top hubs promise.

    A target raised gets the score of a start URL: it comes before all others, and no lesson of
    a strategy moves it. At most a fifth of the fetches between two distillations are raised.

    In a replay time is counted in fetches: what a distillation raises is raised a fixed number of
    fetches after it began, and each begins anew, not from the scores of the last. So it is the
    same every time, resumed or not. Else it is raised as soon as it is known.

    Parameters
    ----------
    crawl : its plan says how often, 0: never any more, and what counts as one site
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._every = crawl.plan.distill
        self._replay = crawl.web is not None
        self._lag = min(_LAG, self._every - 1) if self._replay else 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="distiller")
        self.reset()

    def reset(self) -> None:
        """Forget all links."""
        self._page = GrowingArray(np.int64)
        self._relevance = GrowingArray(np.float64)
        self._repeats = GrowingArray(np.int64)
        self._bound = GrowingArray(np.int64)  # links found by the end of each fetch
        self._source = GrowingArray(np.int64)
        self._target = GrowingArray(np.int64)
        self._under_way: Future[Distilled] | None = None
        self._begun_at = 0
        self._last: Scores | None = None

    def restore(self, fetch: RestoredFetch) -> None:
        """Take note of a fetch and of the links found by it."""
        stored = fetch.stored
        targets = [link.target for link in stored.links]
        if stored.again:
            self.found_again(stored.url, targets)
        else:
            self._count(stored.url, stored.relevance, stored.duplicate_of, targets)

    def restored(self) -> None:
        """Begin again what was under way when the last run ended."""
        if not self._every:
            return
        raised = [event.seq for event in History(self._crawl.store).events(DISTILLED)]
        due = len(self._page) - len(self._page) % self._every
        if due and max(raised, default=0) < due + self._lag:
            self._begin(due)

    def found_again(self, url: int, targets: Sequence[int]) -> None:
        """Take note of links that were not there when their page was first fetched."""
        self._source.extend(np.full(len(targets), url))
        self._target.extend(targets)

    def targets_of(self, url: int) -> NDArray[np.int64]:
        """Return where the links of a page lead, as far as they are known."""
        targets: NDArray[np.int64] = self._target.data[self._source.data == url]
        return targets

    def on_recorded(self, visit: PageVisit) -> None:
        """Take note of a fetch, and begin to distil if it is time and nothing is under way."""
        targets = [link.target for link in visit.link_rows]
        self._count(visit.number, visit.relevance, visit.twin, targets)
        due = self._every > 0 and len(self._page) % self._every == 0
        if due and self._under_way is None:
            self._begin(len(self._page))

    def holds_back(self) -> bool:
        """Tell whether a replay waits for the distillation under way to have its effect."""
        begun = self._under_way is not None and self._replay
        return begun and self._crawl.fetched >= self._begun_at + self._lag

    def poll(self, now: float) -> bool:
        """Raise the best targets of a distillation that is done."""
        if self._under_way is None or not self._under_way.done():
            return False
        if self._replay and not self.holds_back():
            return False
        done, self._under_way = self._under_way, None
        distilled = done.result()
        if not self._replay:
            self._last = distilled.scores
        crawl, urls, promised = self._crawl, self._crawl.urls, distilled.promised
        waiting = np.zeros(len(urls), np.bool_)
        waiting[crawl.frontier.queued()] = True
        # start URLs, and those raised before, come first as it is
        new = [url for url in promised[waiting[promised]].tolist() if urls.score(url) is not None]
        raised = new[: raised_at_once(self._every)]
        for url in raised:
            urls.change(url, QUEUED, None)
            crawl.frontier.push(url, urls.host(url), math.inf)
        told = (crawl.fetched, DISTILLED, distilled.in_words(len(raised), len(new)))
        crawl.put(VisitRecord(events=[told], revisits=self.to_revisit(distilled.hubs)))
        return False

    def to_revisit(self, hubs: Sequence[int]) -> list[RevisitRow]:
        """Queue those of the top hubs that are to be fetched again: none; return their rows."""
        return []

    def close(self) -> None:
        """Wait for a distillation under way, and forget it."""
        self._thread.shutdown()
        self._under_way = None

    def _count(
        self, url: int, relevance: float, duplicate_of: int | None, targets: Sequence[int]
    ) -> None:
        self.found_again(url, targets)
        self._page.extend([url])
        self._relevance.extend([relevance])
        self._repeats.extend([-1 if duplicate_of is None else duplicate_of])
        self._bound.extend([len(self._source)])

    def _begin(self, fetches: int) -> None:
        """Distil what the first `fetches` fetches have found, in the other thread."""
        urls, links = self._crawl.urls, int(self._bound.data[fetches - 1])
        self._begun_at = fetches
        graph = DistilledGraph(  # views: arrays only grow at their ends
            page=self._page.data[:fetches],
            relevance=self._relevance.data[:fetches],
            repeats=self._repeats.data[:fetches],
            source=self._source.data[:links],
            target=self._target.data[:links],
            host=urls.hosts(),
            referrer=urls.referrers(),
        )
        sites = self._crawl.plan.distill_sites
        names = urls.host_names() if sites == "domain" else []
        self._under_way = self._thread.submit(distil, graph, sites, names, self._last)
