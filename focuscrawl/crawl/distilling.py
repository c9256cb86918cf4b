"""Runs the distiller, which finds hubs; raises scores of links on top hubs; revisits top hubs."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
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
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.store import RevisitRow, VisitRecord
from focuscrawl.store.history import History
from focuscrawl.store.schema import QUEUED

if TYPE_CHECKING:
    import sqlite3

    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit, Visit
    from focuscrawl.store import CrawlStore
    from focuscrawl.strategies import JudgedPage


#: rules that define a site, see `focuscrawl.distiller.Sites`; with ``auto`` a site is a host, or a
#: page as long as every link stays on its host
SITES = ("auto", *SITE_RULES)
#: kinds of events: the distiller has run, a hub was fetched again
DISTILLED, REVISITED = "distilled", "revisited"

_LAG = 5  # fetches of a replay between the start of the distiller and the use of its result
_N_HUBS = 10  # hubs whose unfetched targets are raised
_INTERVAL_SHARE = 5  # at most one in five fetches is raised, and at most one in five is a revisit


class DistillerInput(NamedTuple):
    """Input of the distiller: fetched pages with their links; hosts and referrers of all URLs."""

    page: Ints
    relevance: Floats
    repeats: Ints
    source: Ints
    target: Ints
    host: Ints
    referrer: Ints


class DistillerResult(NamedTuple):
    """Result of the distiller."""

    scores: HubScores
    hubs: list[int]  # URL ids of the top hubs, best first
    unfetched_targets: Ints  # URL ids of their unfetched links, best first
    links: int
    rule: str

    def describe(self, raised: int, of: int) -> str:
        """Return the text of the event ``distilled``, which reports a run of the distiller."""
        return (
            f"{raised} of {of} unfetched targets of the top {_N_HUBS} hubs raised "
            f"({self.links} links, sites: {self.rule}, {self.scores.rounds} rounds)"
        )


def run_distiller(
    graph: DistillerInput, sites: str, host_names: Sequence[str], start: HubScores | None = None
) -> DistillerResult:
    """Run the distiller; `sites` is the rule of `SITES` that groups hosts into sites."""
    source, host = graph.source, graph.host
    canonical_ids = resolve_aliases(graph.page, graph.repeats, graph.referrer, source)
    target = canonical_ids[graph.target]
    if sites == "auto":
        found = Sites.by_host_or_none(source, target, host)
    else:
        found = Sites.by_rule(sites, host, host_names)
    relevance = np.full(len(host), np.nan)
    relevance[graph.page] = graph.relevance
    distiller = Distiller(LinkGraph(source, target, found.of_pages, relevance))
    scores = distiller.distill(start)
    hubs = top_pages(scores.hubs, _N_HUBS).tolist()
    unfetched_targets = top_pages(distiller.score_unfetched(scores, _N_HUBS), len(host))
    return DistillerResult(scores, hubs, unfetched_targets, len(source), found.rule)


class Distilling(Part):
    """Runs the distiller in a background thread, and raises the scores of links on the top hubs.

    A raised URL gets the score infinity, like a start page. The crawl fetches raised URLs before
    all URLs with finite scores, and training of the strategy does not change the score of a raised
    URL. Between two runs of the distiller, at most a fifth of the fetches are fetches of raised
    URLs.

    In a replay (crawl of saved pages), the result of the distiller takes effect a fixed number of
    fetches after the distiller started. In a replay, the distiller does not start from the scores
    of its last run. The results of a resumed replay equal those of an uninterrupted replay. In a
    live crawl, the result of the distiller takes effect immediately.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._every = crawl.config.distill
        self._replay = crawl.web is not None
        self._lag = min(_LAG, self._every - 1) if self._replay else 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="distiller")
        self.reset()

    def reset(self) -> None:
        """Discard all links."""
        self._page = GrowingArray(np.int64)
        self._relevance = GrowingArray(np.float64)
        self._repeats = GrowingArray(np.int64)
        self._n_links = GrowingArray(np.int64)  # links found by the end of each fetch
        self._source = GrowingArray(np.int64)
        self._target = GrowingArray(np.int64)
        self._future: Future[DistillerResult] | None = None
        self._started_at = 0
        self._last: HubScores | None = None

    def restore(self, fetch: RestoredFetch) -> None:
        """Add a fetch of an earlier run, and the links of the fetched page."""
        stored = fetch.stored
        targets = [link.target for link in stored.links]
        if stored.is_revisit:
            self.add_links(stored.url, targets)
        else:
            self._count(stored.url, stored.relevance, stored.duplicate_of, targets)

    def on_restored(self) -> None:
        """Restart the distiller if the crawl stopped before the distiller's result took effect."""
        if not self._every:
            return
        raised = [event.seq for event in History(self._crawl.store).events(DISTILLED)]
        due = len(self._page) - len(self._page) % self._every
        if due and max(raised, default=0) < due + self._lag:
            self._start(due)

    def add_links(self, url: int, targets: Sequence[int]) -> None:
        """Add the links that a page has gained when it was fetched again."""
        self._source.extend(np.full(len(targets), url))
        self._target.extend(targets)

    def on_recorded(self, visit: PageVisit) -> None:
        """Add a fetch; start the distiller if a run is due and none is in progress."""
        targets = [link.target for link in visit.link_rows]
        self._count(visit.url_id, visit.relevance, visit.duplicate_id, targets)
        due = self._every > 0 and len(self._page) % self._every == 0
        if due and self._future is None:
            self._start(len(self._page))

    def wait(self, now: float) -> float | None:
        """Make a replay wait for the running distiller when its result must take effect."""
        is_overdue = self._future is not None and self._replay and self._can_apply()
        return POLL_INTERVAL if is_overdue else None

    def poll(self, now: float) -> bool:
        """When the distiller has finished, raise the scores of the best unfetched link targets."""
        if self._future is None or not self._future.done():
            return False
        if self._replay and not self._can_apply():
            return False
        done, self._future = self._future, None
        distilled = done.result()
        if not self._replay:
            self._last = distilled.scores
        crawl, urls, targets = self._crawl, self._crawl.urls, distilled.unfetched_targets
        queued = np.zeros(len(urls), np.bool_)
        queued[crawl.frontier.queued()] = True
        # start pages and URLs raised earlier have no score, and precede all links already
        new = [url for url in targets[queued[targets]].tolist() if urls.score(url) is not None]
        raised = new[: max(1, self._every // _INTERVAL_SHARE)]
        for url in raised:
            urls.set_state(url, QUEUED, None)
            crawl.frontier.push(url, urls.host_id(url), math.inf)
        event = (crawl.fetched, DISTILLED, distilled.describe(len(raised), len(new)))
        crawl.put(VisitRecord(events=[event], revisits=self.queue_revisits(distilled.hubs)))
        return False

    def queue_revisits(self, hubs: Sequence[int]) -> list[RevisitRow]:
        """Queue the top hubs that must be fetched again, and return their rows for the store."""
        return []

    def close(self) -> None:
        """Wait until the distiller has finished, and discard the result."""
        self._thread.shutdown()
        self._future = None

    def _can_apply(self) -> bool:
        return self._crawl.fetched >= self._started_at + self._lag

    def _count(
        self, url: int, relevance: float, duplicate_of: int | None, targets: Sequence[int]
    ) -> None:
        self.add_links(url, targets)
        self._page.extend([url])
        self._relevance.extend([relevance])
        self._repeats.extend([-1 if duplicate_of is None else duplicate_of])
        self._n_links.extend([len(self._source)])

    def _start(self, fetches: int) -> None:
        """Start the distiller with the links of the first ``fetches`` fetches."""
        urls, links = self._crawl.urls, int(self._n_links.data[fetches - 1])
        self._started_at = fetches
        graph = DistillerInput(  # views: arrays only grow at their ends
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
        self._future = self._thread.submit(run_distiller, graph, sites, names, self._last)


class HubRevisits(Distilling):
    """Runs the distiller, queues the top hubs to be fetched again, and processes the responses.

    After each run of the distiller, the top hubs that were not fetched recently are queued again,
    like start pages. Each revisit of a hub is a row of the table ``revisit`` and counts against
    the budget. The row of the hub in the table ``page`` does not change. The critic judges the new
    version of the hub, and the strategy scores new links like the links of any page.

    The row of a revisit is written when the hub is queued, and again after the fetch, so that a
    resumed crawl knows the queued hubs.
    """

    def reset(self) -> None:
        """Discard all links, and all hubs queued to be fetched again."""
        super().reset()
        self._revisits: dict[int, RevisitRow] = {}  # queued or in flight, by URL id
        self._next_row_id = 0

    def on_restored(self) -> None:
        """Queue again the hubs that earlier runs queued but did not fetch."""
        super().on_restored()
        for row in _read_rows(self._crawl.store):
            self._next_row_id = max(self._next_row_id, row.id + 1)
            if row.seq is None and self._crawl.config.revisit_hubs:
                self._queue_row(row)

    def is_revisit(self, url_id: int) -> bool:
        """Tell whether a page is queued to be fetched again."""
        return url_id in self._revisits

    def conditional_headers(self, url_id: int) -> dict[str, str]:
        """Return the header fields of a conditional request for a page that is fetched again."""
        row = self._revisits.get(url_id)
        return {} if row is None else conditional_headers(row.etag, row.last_modified)

    def judge(self, visit: PageVisit) -> None:
        """Judge a page that was fetched again, if it has new links.

        The method ignores links that were removed, and changes of the text. A page whose bytes
        equal those of any fetched page is not judged.
        """
        crawl, view = self._crawl, visit.view
        if view is None:
            if 200 <= visit.status < 300:
                visit.error = visit.error or "no HTML"
            return
        visit.answer = make_answer_row(view, visit.download)
        if crawl.duplicates.find_same_bytes(Duplicates.digest(visit.download.body)) is not None:
            visit.view = None
            return
        visit.links = len(self._new_links(visit))
        if visit.links:
            verdict = judge_visit(crawl, visit, view)
            if verdict is not None:
                visit.relevance, visit.probabilities = verdict.relevance, verdict.probabilities

    def start_expansion(self, visit: PageVisit) -> JudgedPage | None:
        """Return a page that was fetched again, with only its new links; None if it has none."""
        if visit.view is None or not visit.links:
            return None
        return make_judged_page(self._crawl, visit, visit.view, self._new_links(visit))

    def record(self, visit: PageVisit, now: float) -> Visit:
        """Record the outcome of a second fetch, or that the URL of the fetch was excluded."""
        crawl, row, answer = self._crawl, self._revisits.pop(visit.url_id), visit.answer
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
        named = [*visit.events, (REVISITED, f"{visit.url}: {_describe(done)}")]
        events = [(visit.seq, kind, detail) for kind, detail in named]
        crawl.put(VisitRecord(links=visit.link_rows, revisits=[done], events=events))
        self.add_links(visit.url_id, [link.target for link in visit.link_rows])
        return visit

    def queue_revisits(self, hubs: Sequence[int]) -> list[RevisitRow]:
        """Queue some top hubs again, so few that at most a fifth of all fetches are revisits."""
        crawl = self._crawl
        if not crawl.config.revisit_hubs:
            return []
        if crawl.web is not None:
            crawl.flush()  # so that the result of a replay does not depend on the disk
        due = [row for row in self._last_fetches(hubs) if self._is_due(row)]
        rows = []
        for last in due[: max(1, crawl.config.distill // _INTERVAL_SHARE)]:
            row = RevisitRow(
                id=self._next_row_id,
                url=last["url"],
                asked_at=crawl.fetched,
                etag=last["etag"],
                last_modified=last["last_modified"],
            )
            self._next_row_id += 1
            self._queue_row(row)
            rows.append(row)
        return rows

    def _new_links(self, visit: PageVisit) -> dict[int, str]:
        assert visit.view is not None
        found = followed_links(self._crawl, visit.view, visit.depth, visit.requested)
        urls = self._crawl.urls
        known = set(self._target.data[self._source.data == visit.url_id].tolist())
        return {place: url for place, url in found.items() if urls.get(url) not in known}

    def _queue_row(self, row: RevisitRow) -> None:
        self._revisits[row.url] = row
        self._crawl.frontier.push(row.url, self._crawl.urls.host_id(row.url), np.inf)

    def _is_due(self, last: sqlite3.Row) -> bool:
        crawl = self._crawl
        if crawl.web is not None:
            return bool(crawl.fetched - last["seq"] >= crawl.config.revisit_hubs)
        at = datetime.fromisoformat(last["fetched_at"]).timestamp()
        return time.time() - at >= crawl.config.revisit_hubs

    def _last_fetches(self, hubs: Sequence[int]) -> list[sqlite3.Row]:
        """Return the last fetch of each hub that is not queued, in the order of ``hubs``."""
        store, idle = self._crawl.store, [hub for hub in hubs if hub not in self._revisits]
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
    """Tell whether a crawl has fetched pages again, or has queued pages to be fetched again."""
    return bool([*store.rows("SELECT id FROM revisit LIMIT 1")])


def _read_rows(store: CrawlStore) -> Iterator[RevisitRow]:
    rows = store.rows("SELECT * FROM revisit ORDER BY id")
    return (RevisitRow(**dict(row)) for row in rows)


def _describe(row: RevisitRow) -> str:
    if row.status == NOT_MODIFIED:
        return "not modified"
    if row.error is not None:
        return row.error
    if row.status is not None and not 200 <= row.status < 300:
        return f"status {row.status}"
    return f"{row.links} new links" if row.links else "no new links"
