"""Every so many fetches, what the top hubs link to comes first (METHODS 7; F99 section 3.3)."""

from __future__ import annotations

import math
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.distiller import RULES, Distiller, LinkGraph, Scores, Sites, best, stand_ins
from focuscrawl.foundation.arrays import GrowingArray
from focuscrawl.store.schema import QUEUED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.crawl.finding import Finding
    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.frontier import Frontier

#: what may be a site, by `focuscrawl.distiller.Sites`; ``auto``: a host, or, as long as every link
#: stays on its host, a page
SITES = ("auto", *RULES)
#: kind of the event that tells of a distillation
DISTILLED = "distilled"

_LAG = 5  # fetches of a replay that go on while it distils
_HUBS = 10  # whose targets are raised
_SHARE = 5  # at most so manieth of all fetches are of targets raised


class _Known(NamedTuple):
    page: NDArray[np.int64]
    relevance: NDArray[np.float64]
    repeats: NDArray[np.int64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    host: NDArray[np.int64]
    referrer: NDArray[np.int64]


class _Distilled(NamedTuple):
    scores: Scores
    hubs: list[int]  # the top ones, the best first
    promised: NDArray[np.int64]  # URLs never fetched that the top hubs link to, the best first
    links: int
    rule: str


class Distilling:
    """Runs the distiller off the event loop, and raises what the top hubs promise.

    A target raised gets the score of a start URL: it comes before all others, and no lesson of
    a strategy moves it. At most a fifth of the fetches between two distillations are raised.

    Parameters
    ----------
    every : fetches from one distillation to the next; 0: never
    sites : one of `SITES`
    replay : time is counted in fetches: what a distillation raises is raised a fixed number of
        fetches after it began, and each begins anew, not from the scores of the last. So it is
        the same every time, resumed or not. Else it is raised as soon as it is known
    """

    def __init__(self, every: int, sites: str, *, replay: bool) -> None:
        self._every = every
        self._sites = sites
        self._replay = replay
        self._lag = min(_LAG, every - 1) if replay else 0
        self._page = GrowingArray(np.int64)
        self._relevance = GrowingArray(np.float64)
        self._repeats = GrowingArray(np.int64)
        self._bound = GrowingArray(np.int64)  # links found by the end of each fetch
        self._source = GrowingArray(np.int64)
        self._target = GrowingArray(np.int64)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="distiller")
        self._under_way: Future[_Distilled] | None = None
        self._begun_at = 0
        self._last: Scores | None = None
        self._hubs: list[int] = []

    def recall(
        self, url: int, relevance: float, duplicate_of: int | None, targets: Sequence[int]
    ) -> None:
        """Take note of a fetch and of the links found by it."""
        if self._every:
            self._source.extend(np.full(len(targets), url))
            self._target.extend(targets)
            self._page.extend([url])
            self._relevance.extend([relevance])
            self._repeats.extend([-1 if duplicate_of is None else duplicate_of])
            self._bound.extend([len(self._source)])

    def found_again(self, url: int, targets: Sequence[int]) -> None:
        """Take note of links that were not there when their page was first fetched."""
        if self._every:
            self._source.extend(np.full(len(targets), url))
            self._target.extend(targets)

    def targets_of(self, url: int) -> NDArray[np.int64]:
        """Return where the links of a page lead, as far as they are known."""
        targets: NDArray[np.int64] = self._target.data[self._source.data == url]
        return targets

    def take_hubs(self) -> list[int]:
        """Return the top hubs of the distillation that `adopt` was last about, once."""
        hubs, self._hubs = self._hubs, []
        return hubs

    def visited(self, urls: UrlTable, url: int, page: Finding) -> None:
        """Take note of a fetch, and begin to distil if it is time and nothing is under way."""
        targets = [link.target for link in page.link_rows]
        self.recall(url, page.relevance, page.duplicate_of, targets)
        if self._every and len(self._page) % self._every == 0 and self._under_way is None:
            self._begin(urls, len(self._page))

    def resume(self, urls: UrlTable, last: int) -> None:
        """Begin again what was under way when the last run ended.

        Parameters
        ----------
        last : fetches when something was last raised, 0 if never
        """
        if self._every:
            due = len(self._page) - len(self._page) % self._every
            if due and last < due + self._lag:
                self._begin(urls, due)

    def waited_for(self, fetched: int) -> bool:
        """Tell whether nothing may be fetched before the distillation under way has its effect."""
        begun = self._under_way is not None and self._replay
        return begun and fetched >= self._begun_at + self._lag

    def adopt(
        self, fetched: int, urls: UrlTable, frontier: Frontier
    ) -> list[tuple[int, str, str]]:
        """Raise the best targets of a distillation that is done.

        Returns
        -------
        The event to record, none if nothing was done

        Raises
        ------
        Exception
            Whatever stopped the distiller.
        """
        if self._under_way is None or not self._under_way.done():
            return []
        if self._replay and not self.waited_for(fetched):
            return []
        done, self._under_way = self._under_way, None
        scores, self._hubs, promised, links, rule = done.result()
        if not self._replay:
            self._last = scores
        waiting = np.zeros(len(urls), np.bool_)
        waiting[frontier.queued()] = True
        room = max(1, self._every // _SHARE)
        # start URLs, and those raised before, come first as it is
        new = [url for url in promised[waiting[promised]].tolist() if urls.score(url) is not None]
        for url in new[:room]:
            urls.change(url, QUEUED, None)
            frontier.push(url, urls.host(url), math.inf)
        detail = (
            f"{len(new[:room])} of {len(new)} unfetched targets of the top {_HUBS} hubs raised "
            f"({links} links, sites: {rule}, {scores.rounds} rounds)"
        )
        return [(fetched, DISTILLED, detail)]

    def close(self) -> None:
        """Wait for a distillation under way, and forget it."""
        self._thread.shutdown()
        self._under_way = None

    def _begin(self, urls: UrlTable, fetches: int) -> None:
        """Distil what the first `fetches` fetches have found, in the other thread."""
        links = int(self._bound.data[fetches - 1])
        self._begun_at = fetches
        known = _Known(  # views: arrays only grow at their ends
            page=self._page.data[:fetches],
            relevance=self._relevance.data[:fetches],
            repeats=self._repeats.data[:fetches],
            source=self._source.data[:links],
            target=self._target.data[:links],
            host=urls.hosts(),
            referrer=urls.referrers(),
        )
        names = urls.host_names() if self._sites == "domain" else []
        self._under_way = self._thread.submit(self._distill, known, names)

    def _distill(self, known: _Known, host_names: Sequence[str]) -> _Distilled:
        source, host = known.source, known.host
        stands = stand_ins(known.page, known.repeats, known.referrer, source)
        target = stands[known.target]
        if self._sites == "auto":
            sites = Sites.fitting(source, target, host)
        else:
            sites = Sites.by(self._sites, host, host_names)
        relevance = np.full(len(host), np.nan)
        relevance[known.page] = known.relevance
        distiller = Distiller(LinkGraph(source, target, sites.of_pages, relevance))
        scores = distiller.distill(self._last)
        hubs = best(scores.hubs, _HUBS).tolist()
        promised = best(distiller.promise(scores, _HUBS), len(host))
        return _Distilled(scores, hubs, promised, len(source), sites.rule)
