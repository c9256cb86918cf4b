"""The distiller where several workers crawl: one of them distils what all have found."""

from __future__ import annotations

import logging
import math
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from focuscrawl.crawl.part import Part
from focuscrawl.crawl.parts.distilling import DISTILLED, DistilledGraph, distil, raised_at_once
from focuscrawl.store import CrawlStore
from focuscrawl.store.history import History
from focuscrawl.store.refusals import first_line
from focuscrawl.store.schema import QUEUED, host, link, page, url
from focuscrawl.workers.writer import TROUBLE, passes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.workers.heartbeat import Heartbeat
    from focuscrawl.workers.url_ids import SharedUrlTable

logger = logging.getLogger(__name__)

_CANDIDATES = 20  # times the URLs that may be raised: most of what hubs promise was fetched
_AGAIN = 2.0  # seconds without distillations where the server is away


class _Done(NamedTuple):
    begun_at: int  # fetches when the last distillation began
    raised: Sequence[tuple[str, int]] = ()  # URLs, with their depths
    detail: str | None = None  # None: it was not time yet


class StoredGraph(NamedTuple):
    """What is distilled, in dense numbers, and what these stand for in the store.

    Attributes
    ----------
    ids : int64 (n,), of the URLs
    hosts : int64 (m,), of the hosts
    """

    graph: DistilledGraph
    ids: NDArray[np.int64]
    hosts: NDArray[np.int64]

    @classmethod
    def of(cls, store: CrawlStore) -> StoredGraph:
        """Read a store to which others go on writing: links whose URLs came later are left out."""
        nothing, u, p = sa.literal(-1), url.c, page.c
        links = _table(store, source=link.c.source, target=link.c.target)
        fetched = _table(
            store,
            url=p.url,
            repeats=sa.func.coalesce(p.duplicate_of, nothing),
            relevance=p.relevance,
        )
        known = _table(store, id=u.id, host=u.host, referrer=sa.func.coalesce(u.referrer, nothing))
        known = known[np.argsort(known["id"])]
        ids = np.ascontiguousarray(known["id"])
        hosts, of_host = np.unique(known["host"], return_inverse=True)

        def numbers(wanted: NDArray[np.int64]) -> NDArray[np.int64]:
            """Return the dense numbers of URLs by those in the store; -1 for none."""
            if not len(ids):
                return np.full(len(wanted), -1)
            places = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
            places[ids[places] != wanted] = -1
            return places

        source, target = numbers(links["source"]), numbers(links["target"])
        del links
        whole = (source >= 0) & (target >= 0)
        pages = numbers(fetched["url"])
        there = pages >= 0
        graph = DistilledGraph(
            page=pages[there],
            relevance=fetched["relevance"][there],
            repeats=numbers(fetched["repeats"])[there],
            source=source[whole],
            target=target[whole],
            host=of_host.astype(np.int64),
            referrer=numbers(known["referrer"]),
        )
        return cls(graph, ids, hosts)


def _table(store: CrawlStore, **columns: sa.ColumnElement[Any]) -> NDArray[np.void]:
    """Read columns of numbers, without a Python object for each of them at the same time."""
    kinds = [
        (name, np.float64 if isinstance(column.type, sa.Float) else np.int64)
        for name, column in columns.items()
    ]
    return np.fromiter(map(tuple, store.rows(sa.select(*columns.values()))), np.dtype(kinds))


class SharedDistilling(Part):
    """Does what `focuscrawl.crawl.parts.distilling.Distilling` does, for all workers.

    A worker has the links into its own hosts alone, so the graph is read from the store, in a
    thread, by the worker that has been there longest. What is raised comes next with the
    worker whose host it is on, as a start URL does. While the server is away, nothing is
    distilled.
    """

    def __init__(self, crawl: CrawlState, urls: SharedUrlTable, heartbeat: Heartbeat) -> None:
        self._crawl, self._urls, self._heartbeat = crawl, urls, heartbeat
        # one that says what went wrong as the driver does, see `_take_up`
        self._store = CrawlStore(crawl.store.engine, crawl.store.where)
        self._every = crawl.plan.distill
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="distiller")
        self._under_way: Future[_Done] | None = None
        self._last: int | None = None  # fetches when it began; None: not known yet
        self._not_before = 0.0

    def poll(self, now: float) -> bool:
        """Raise what was distilled; begin if it is time and this worker's turn."""
        if self._under_way is not None and self._under_way.done():
            done, self._under_way = self._under_way, None
            self._take_up(done)
        state = self._heartbeat.state
        if not state.leads:
            self._last = None  # another one may distil meanwhile
        elif self._under_way is None and self._due(state.fetched, self._last):
            self._under_way = self._thread.submit(self._distil_if_due, state.fetched, self._last)
        return False

    def close(self) -> None:
        """Wait for a distillation under way, and forget it."""
        self._thread.shutdown()
        self._under_way = None

    def _due(self, fetched: int, last: int | None) -> bool:
        """Tell whether it is time, or may be."""
        if self._heartbeat.outage.on or time.monotonic() < self._not_before:
            return False
        return last is None or fetched // self._every > last // self._every

    def _take_up(self, done: Future[_Done]) -> None:
        """Raise what was distilled, unless the store is away."""
        try:
            self._last, raised, detail = done.result()
        except TROUBLE as error:
            if not passes(error):
                raise
            said = first_line(error)
            logger.warning("a distillation is left out, the store is away: %s", said)
            self._not_before = time.monotonic() + _AGAIN
            return
        for name, depth in raised:
            self._crawl.queue(self._urls.add_stored(name, depth), math.inf)
        if detail is not None:
            self._crawl.note(DISTILLED, detail)

    # -- in the other thread ---------------------------------------------------------------

    def _distil_if_due(self, fetched: int, last: int | None) -> _Done:
        if last is None:
            told = History(self._store).events(DISTILLED)
            last = max((event.seq for event in told), default=0)
        if fetched // self._every <= last // self._every:
            return _Done(last)
        sites = self._crawl.plan.distill_sites
        graph, ids, hosts = StoredGraph.of(self._store)
        distilled = distil(graph, sites, self._names(hosts) if sites == "domain" else [])
        room = raised_at_once(self._every)
        best = [int(ids[number]) for number in distilled.promised[: _CANDIDATES * room].tolist()]
        u = url.c
        waiting = sa.select(u.id, u.url, u.depth).where(
            u.id.in_(best), u.state == QUEUED, u.score.is_not(None)
        )
        found = {row.id: (row.url, row.depth) for row in self._store.rows(waiting)}
        new = [found[each] for each in best if each in found]
        return _Done(fetched, new[:room], distilled.in_words(len(new[:room]), len(new)))

    def _names(self, hosts: NDArray[np.int64]) -> list[str]:
        rows = self._store.rows(sa.select(host.c.id, host.c.name))
        names = {row.id: row.name for row in rows}
        return [names.get(each, "") for each in hosts.tolist()]
