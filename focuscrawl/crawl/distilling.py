"""The distiller in a crawl: targets of hubs first, hubs fetched again (F99 section 3.3)."""

from __future__ import annotations

import json
import math
import time
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.first_visits import followed_links, judge_visit, make_judged_page
from focuscrawl.crawl.part import POLL_INTERVAL, Part
from focuscrawl.crawl.revisit_policy import conditional_headers
from focuscrawl.crawl.visit import NOT_MODIFIED, make_answer_row
from focuscrawl.distiller import (
    SITE_RULES,
    Distiller,
    HubScores,
    LinkGraph,
    Sites,
    resolve_aliases,
    top_pages,
)
from focuscrawl.foundation.arrays import GrowingArray
from focuscrawl.store import RevisitRow, VisitRecord
from focuscrawl.store.history import History
from focuscrawl.store.schema import QUEUED

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit, Visit
    from focuscrawl.store import CrawlStore
    from focuscrawl.strategies import JudgedPage


#: what may be a site, by `focuscrawl.distiller.Sites`; ``auto``: a host, or, as long as every link
#: stays on its host, a page
SITES = ("auto", *SITE_RULES)
#: kinds of the events of a distillation, and of a page fetched again
DISTILLED, REVISITED = "distilled", "revisited"

_LAG = 5  # fetches of a replay from the start of a distillation until it takes effect
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
    """The result of a distillation.

    Attributes
    ----------
    hubs : the top ones, the best first
    promised : int64 (n,), URLs never fetched that these link to, the best first
    """

    scores: HubScores
    hubs: list[int]
    promised: NDArray[np.int64]
    links: int
    rule: str

    def describe(self, raised: int, of: int) -> str:
        """Return the detail of the event, for so many URLs raised."""
        return (
            f"{raised} of {of} unfetched targets of the top {_HUBS} hubs raised "
            f"({self.links} links, sites: {self.rule}, {self.scores.rounds} rounds)"
        )


def distil(
    graph: DistilledGraph, sites: str, host_names: Sequence[str], start: HubScores | None = None
) -> Distilled:
    """Run the distiller.

    Parameters
    ----------
    sites : one of `SITES`
    host_names : for the rule ``domain``
    start : scores to start from
    """
    source, host = graph.source, graph.host
    stands = resolve_aliases(graph.page, graph.repeats, graph.referrer, source)
    target = stands[graph.target]
    if sites == "auto":
        found = Sites.by_host_or_none(source, target, host)
    else:
        found = Sites.by_rule(sites, host, host_names)
    relevance = np.full(len(host), np.nan)
    relevance[graph.page] = graph.relevance
    distiller = Distiller(LinkGraph(source, target, found.of_pages, relevance))
    scores = distiller.distill(start)
    hubs = top_pages(scores.hubs, _HUBS).tolist()
    promised = top_pages(distiller.score_unfetched(scores, _HUBS), len(host))
    return Distilled(scores, hubs, promised, len(source), found.rule)


class Distilling(Part):
    """Runs the distiller off the event loop, and raises what the top hubs promise.

    A target raised gets the score of a start URL: it comes before all others, and no lesson of
    a strategy moves it. At most a fifth of the fetches between two distillations are raised.

    In a replay time is counted in fetches: a distillation takes effect a fixed number of fetches
    after it started, and does not start from the scores of the last. So it is the same every
    time, resumed or not. In a live crawl it takes effect as soon as it is done.

    Parameters
    ----------
    crawl : its configuration has how often, 0: no more, and what counts as one site
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._every = crawl.config.distill
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
        self._started_at = 0
        self._last: HubScores | None = None

    def restore(self, fetch: RestoredFetch) -> None:
        """Add a fetch of an earlier run and its links."""
        stored = fetch.stored
        targets = [link.target for link in stored.links]
        if stored.again:
            self.add_links(stored.url, targets)
        else:
            self._count(stored.url, stored.relevance, stored.duplicate_of, targets)

    def on_restored(self) -> None:
        """Start again what was under way when the last run stopped."""
        if not self._every:
            return
        raised = [event.seq for event in History(self._crawl.store).events(DISTILLED)]
        due = len(self._page) - len(self._page) % self._every
        if due and max(raised, default=0) < due + self._lag:
            self._start(due)

    def add_links(self, url: int, targets: Sequence[int]) -> None:
        """Add links that were not there when their page was first fetched."""
        self._source.extend(np.full(len(targets), url))
        self._target.extend(targets)

    def on_recorded(self, visit: PageVisit) -> None:
        """Add a fetch, and start to distil if that is due and nothing is under way."""
        targets = [link.target for link in visit.link_rows]
        self._count(visit.url_id, visit.relevance, visit.duplicate_id, targets)
        due = self._every > 0 and len(self._page) % self._every == 0
        if due and self._under_way is None:
            self._start(len(self._page))

    def wait(self, now: float) -> float | None:
        """Make a replay wait for the distillation under way, when its effect is due."""
        return (
            POLL_INTERVAL
            if self._under_way is not None and self._replay and self._takes_effect()
            else None
        )

    def poll(self, now: float) -> bool:
        """Raise the best targets of a distillation that is done."""
        if self._under_way is None or not self._under_way.done():
            return False
        if self._replay and not self._takes_effect():
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
        raised = new[: max(1, self._every // _SHARE)]
        for url in raised:
            urls.set_state(url, QUEUED, None)
            crawl.frontier.push(url, urls.host_id(url), math.inf)
        event = (crawl.fetched, DISTILLED, distilled.describe(len(raised), len(new)))
        crawl.put(VisitRecord(events=[event], revisits=self.queue_revisits(distilled.hubs)))
        return False

    def queue_revisits(self, hubs: Sequence[int]) -> list[RevisitRow]:
        """Queue those of the top hubs that are to be fetched again: none; return their rows."""
        return []

    def close(self) -> None:
        """Wait for a distillation under way, and drop it."""
        self._thread.shutdown()
        self._under_way = None

    def _takes_effect(self) -> bool:
        return self._crawl.fetched >= self._started_at + self._lag

    def _count(
        self, url: int, relevance: float, duplicate_of: int | None, targets: Sequence[int]
    ) -> None:
        self.add_links(url, targets)
        self._page.extend([url])
        self._relevance.extend([relevance])
        self._repeats.extend([-1 if duplicate_of is None else duplicate_of])
        self._bound.extend([len(self._source)])

    def _start(self, fetches: int) -> None:
        """Distil the links of the first `fetches` fetches, in the other thread."""
        urls, links = self._crawl.urls, int(self._bound.data[fetches - 1])
        self._started_at = fetches
        graph = DistilledGraph(  # views: arrays only grow at their ends
            page=self._page.data[:fetches],
            relevance=self._relevance.data[:fetches],
            repeats=self._repeats.data[:fetches],
            source=self._source.data[:links],
            target=self._target.data[:links],
            host=urls.host_ids(),
            referrer=urls.referrer_ids(),
        )
        sites = self._crawl.config.distill_sites
        names = urls.host_names() if sites == "domain" else []
        self._under_way = self._thread.submit(distil, graph, sites, names, self._last)


class HubRevisits(Distilling):
    """Distils, and has top hubs fetched again; their answers are processed here.

    Whenever the distiller has run, its top hubs whose last fetch is long enough ago wait in the
    frontier like start URLs. A second fetch is a row of the table ``revisit``, not of ``page``:
    the page keeps its one row and place, and counts nowhere else. It counts against the budget.
    What was not among the links of the page is scored by the strategy as the links of any page
    are, by the critic's judgement of the page as it is now.

    The rows are written when a hub is queued, with the event ``distilled`` in one transaction,
    and again when it was fetched: a crawl that was killed knows what it still has to do.
    """

    def reset(self) -> None:
        """Forget all links, and the pages that wait."""
        super().reset()
        self._wanted: dict[int, RevisitRow] = {}  # waiting or under way
        self._decided = 0  # rows so far

    def on_restored(self) -> None:
        """Queue the hubs that earlier runs have not fetched."""
        super().on_restored()
        for row in _rows_of(self._crawl.store):
            self._decided = max(self._decided, row.id + 1)
            if row.seq is None and self._crawl.config.revisit_hubs:
                self._wait_for(row)

    def is_revisit(self, url_id: int) -> bool:
        """Tell whether a page is to be fetched again; its answer is for this part then."""
        return url_id in self._wanted

    def conditional_headers(self, url_id: int) -> dict[str, str]:
        """Return the header fields by which a page is asked for again if it has changed."""
        row = self._wanted.get(url_id)
        return {} if row is None else conditional_headers(row.etag, row.last_modified)

    def judge(self, visit: PageVisit) -> None:
        """Judge the page if it has new links.

        Links that it has lost, and its new text, change nothing; nor does a page that is the same
        to the byte, or the same as another one.
        """
        crawl, view = self._crawl, visit.view
        if view is None:
            if 200 <= visit.status < 300:
                visit.error = visit.error or "no HTML"
            return
        visit.answer = make_answer_row(view, visit.download)
        if crawl.duplicates.find(Duplicates.digest(visit.download.body), []) is not None:
            visit.view = None
            return
        visit.links = len(self._new_links(visit))
        if visit.links:
            verdict = judge_visit(crawl, visit, view)
            if verdict is not None:
                visit.relevance, visit.probabilities = verdict.relevance, verdict.probabilities

    def start_expansion(self, visit: PageVisit) -> JudgedPage | None:
        """Return the page if it has new links, with these."""
        if visit.view is None or not visit.links:
            return None
        return make_judged_page(self._crawl, visit, visit.view, self._new_links(visit))

    def record(self, visit: PageVisit, now: float) -> Visit:
        """Record the outcome of a second fetch, or that it was not made."""
        crawl, row, answer = self._crawl, self._wanted.pop(visit.url_id), visit.answer
        crawl.frontier.release(visit.url_id, now)
        visit.seq, visit.score = crawl.fetched, None
        visit.set_fetch_time()
        made = visit.excluded is None
        done = row._replace(
            seq=visit.seq,
            status=visit.status if made else None,
            relevance=visit.relevance if visit.link_rows else None,
            fetched_at=visit.fetched_at,
            size=visit.bytes,
            error=visit.error,
            etag=row.etag if answer is None else answer.etag,
            last_modified=row.last_modified if answer is None else answer.last_modified,
            links=len(visit.link_rows),
            first_link=visit.link_rows[0].id if visit.link_rows else None,
            memo=visit.memo,
        )
        if made:
            crawl.count_refetch(visit.status)
        named = [*visit.events, (REVISITED, f"{visit.url}: {_in_words(done)}")]
        events = [(visit.seq, kind, detail) for kind, detail in named]
        crawl.put(VisitRecord(links=visit.link_rows, revisits=[done], events=events))
        self.add_links(visit.url_id, [link.target for link in visit.link_rows])
        return visit

    def queue_revisits(self, hubs: Sequence[int]) -> list[RevisitRow]:
        """Queue those of the top hubs that are due; at most a fifth of all fetches are."""
        crawl = self._crawl
        if not crawl.config.revisit_hubs:
            return []
        if crawl.web is not None:
            crawl.flush()  # a replay is to find the same whatever the disk does
        due = [row for row in self._last_fetches(hubs) if self._is_due(row)]
        rows = []
        for last in due[: max(1, crawl.config.distill // 5)]:
            row = RevisitRow(
                id=self._decided,
                url=last["url"],
                asked_at=crawl.fetched,
                etag=last["etag"],
                last_modified=last["last_modified"],
            )
            self._decided += 1
            self._wait_for(row)
            rows.append(row)
        return rows

    def _new_links(self, visit: PageVisit) -> dict[int, str]:
        assert visit.view is not None
        found = followed_links(self._crawl, visit.view, visit.depth, visit.requested)
        urls = self._crawl.urls
        known = set(self._target.data[self._source.data == visit.url_id].tolist())
        return {place: url for place, url in found.items() if urls.get(url) not in known}

    def _wait_for(self, row: RevisitRow) -> None:
        self._wanted[row.url] = row
        self._crawl.frontier.push(row.url, self._crawl.urls.host_id(row.url), np.inf)

    def _is_due(self, last: sqlite3.Row) -> bool:
        """Tell whether a page was last fetched long enough ago."""
        crawl = self._crawl
        if crawl.web is not None:
            return bool(crawl.fetched - last["seq"] >= crawl.config.revisit_hubs)
        at = datetime.fromisoformat(last["fetched_at"]).timestamp()
        return time.time() - at >= crawl.config.revisit_hubs

    def _last_fetches(self, hubs: Sequence[int]) -> list[sqlite3.Row]:
        """Return when and how hubs that do not wait already were last fetched, in their order."""
        store, idle = self._crawl.store, [hub for hub in hubs if hub not in self._wanted]
        first = """
            SELECT p.url, p.seq, p.fetched_at, a.etag, a.last_modified
            FROM page p LEFT JOIN answer a ON a.seq = p.seq
            WHERE p.url IN (SELECT value FROM json_each(?))
        """
        again = """
            SELECT url, seq, fetched_at, etag, last_modified FROM revisit
            WHERE url IN (SELECT value FROM json_each(?)) AND seq IS NOT NULL ORDER BY id
        """
        wanted = (json.dumps(idle),)
        last = {row["url"]: row for each in (first, again) for row in store.rows(each, wanted)}
        return [last[hub] for hub in idle if hub in last]


def has_revisits(store: CrawlStore) -> bool:
    """Tell whether a crawl has fetched pages twice, or was about to."""
    return bool([*store.rows("SELECT id FROM revisit LIMIT 1")])


def _rows_of(store: CrawlStore) -> Iterator[RevisitRow]:
    rows = store.rows("SELECT * FROM revisit ORDER BY id")
    return (RevisitRow(**dict(row)) for row in rows)


def _in_words(row: RevisitRow) -> str:
    if row.status == NOT_MODIFIED:
        return "not modified"
    if row.error is not None:
        return row.error
    if row.status is not None and not 200 <= row.status < 300:
        return f"status {row.status}"
    return f"{row.links} new links" if row.links else "no new links"
