"""The distiller where several workers crawl: one of them distils what all have found."""

from __future__ import annotations

import math
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from focuscrawl.crawl.part import Part
from focuscrawl.crawl.parts.distilling import DISTILLED, DistilledGraph, distil, raised_at_once
from focuscrawl.store.history import History
from focuscrawl.store.schema import QUEUED, host, link, page, url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.workers.heartbeat import Heartbeat
    from focuscrawl.workers.url_ids import SharedUrlTable

_CANDIDATES = 20  # times the URLs that may be raised: most of what hubs promise was fetched


class _Raised(NamedTuple):
    urls: list[tuple[str, int]]  # with their depths
    detail: str


class SharedDistilling(Part):
    """Does what `focuscrawl.crawl.parts.distilling.Distilling` does, for all workers.

    A worker has the links into its own hosts alone, so the graph is read from the store, in a
    thread, by the worker that has been there longest. What is raised comes next with the
    worker whose host it is on, as a start URL does.
    """

    def __init__(self, crawl: CrawlState, urls: SharedUrlTable, heartbeat: Heartbeat) -> None:
        self._crawl, self._urls, self._heartbeat = crawl, urls, heartbeat
        self._every = crawl.plan.distill
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="distiller")
        self._under_way: Future[_Raised] | None = None
        self._last: int | None = None  # fetches when it began; None: not known yet

    def poll(self, now: float) -> bool:
        """Raise what was distilled; begin if it is time and this worker's turn."""
        if self._under_way is not None and self._under_way.done():
            done, self._under_way = self._under_way, None
            raised = done.result()
            for name, depth in raised.urls:
                self._crawl.queue(self._urls.add_stored(name, depth), math.inf)
            self._crawl.note(DISTILLED, raised.detail)
        state = self._heartbeat.state
        if not state.leads:
            self._last = None  # another one may distil meanwhile
            return False
        if self._last is None:
            told = History(self._crawl.store).events(DISTILLED)
            self._last = max((event.seq for event in told), default=0)
        if self._under_way is None and state.fetched // self._every > self._last // self._every:
            self._last = state.fetched
            self._under_way = self._thread.submit(self._distil)
        return False

    def close(self) -> None:
        """Wait for a distillation under way, and forget it."""
        self._thread.shutdown()
        self._under_way = None

    def _distil(self) -> _Raised:
        store, sites = self._crawl.store, self._crawl.plan.distill_sites

        def table(*columns: sa.ColumnElement[Any]) -> NDArray[np.int64]:
            rows = [tuple(row) for row in store.rows(sa.select(*columns))]
            return np.array(rows, np.int64).reshape(-1, len(columns))

        links = table(link.c.source, link.c.target)
        nothing = sa.literal(-1)
        known = table(url.c.id, url.c.host, sa.func.coalesce(url.c.referrer, nothing))
        known = known[np.argsort(known[:, 0])]
        ids = known[:, 0]
        hosts, of_host = np.unique(known[:, 1], return_inverse=True)
        p = page.c
        fetched = [*store.rows(sa.select(p.url, p.relevance, p.duplicate_of))]

        def numbers(of: Sequence[int | None] | NDArray[np.int64]) -> NDArray[np.int64]:
            """Return the dense numbers of URLs by those in the store; -1 for none."""
            wanted = np.array([-1 if each is None else each for each in of], np.int64)
            places = np.minimum(np.searchsorted(ids, wanted), max(len(ids) - 1, 0))
            return np.where(ids[places] == wanted, places, -1) if len(ids) else wanted

        source, target = numbers(links[:, 0]), numbers(links[:, 1])
        whole = (source >= 0) & (target >= 0)  # others go on writing
        pages = numbers([row.url for row in fetched])
        there = pages >= 0
        graph = DistilledGraph(
            page=pages[there],
            relevance=np.array([row.relevance for row in fetched])[there],
            repeats=numbers([row.duplicate_of for row in fetched])[there],
            source=source[whole],
            target=target[whole],
            host=of_host.astype(np.int64),
            referrer=numbers(known[:, 2]),
        )
        distilled = distil(graph, sites, self._names(hosts) if sites == "domain" else [])
        room = raised_at_once(self._every)
        best = [int(ids[number]) for number in distilled.promised[: _CANDIDATES * room].tolist()]
        u = url.c
        waiting = sa.select(u.id, u.url, u.depth).where(
            u.id.in_(best), u.state == QUEUED, u.score.is_not(None)
        )
        found = {row.id: (row.url, row.depth) for row in store.rows(waiting)}
        new = [found[each] for each in best if each in found]
        return _Raised(new[:room], distilled.in_words(len(new[:room]), len(new)))

    def _names(self, hosts: NDArray[np.int64]) -> list[str]:
        rows = self._crawl.store.rows(sa.select(host.c.id, host.c.name))
        names = {row.id: row.name for row in rows}
        return [names.get(each, "") for each in hosts.tolist()]
