"""Top hubs are fetched once more, for the links that are new on them (METHODS 7; F99 3.3)."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.first_visits import followed_links, judged_page, verdict_on
from focuscrawl.crawl.parts.distilling import Distilling
from focuscrawl.crawl.parts.revisit_policy import conditions
from focuscrawl.crawl.visit import NOT_MODIFIED, answer_of
from focuscrawl.store import RevisitRow, VisitRecord, schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from focuscrawl.crawl.part import Visits
    from focuscrawl.crawl.visit import PageVisit, Visit
    from focuscrawl.store import CrawlStore
    from focuscrawl.strategies import JudgedPage

#: kind of the event that tells of a page fetched again
REVISITED = "revisited"


class HubRevisits(Distilling):
    """Distils, has top hubs fetched twice or more, and sees to their answers itself.

    Whenever the distiller has run, its top hubs whose last fetch is long enough ago wait in the
    frontier like start URLs. A second fetch is a row of the table ``revisit``, not of ``page``:
    the page keeps its one row and place, and counts nowhere else. It counts against the budget.
    What was not among the links of the page is scored by the strategy as the links of any page
    are, by the critic's judgement of the page as it is now.

    The rows are written when it is decided, with the event ``distilled`` in one transaction,
    and again when it is over: a crawl that was killed knows what it still has to do.
    """

    def reset(self) -> None:
        """Forget all links, and what waits."""
        super().reset()
        self._wanted: dict[int, RevisitRow] = {}  # waiting or under way
        self._decided = 0  # rows so far

    def restored(self) -> None:
        """Take up what earlier runs have left undone."""
        super().restored()
        for row in _rows_of(self._crawl.store):
            self._decided = max(self._decided, row.id + 1)
            if row.seq is None and self._crawl.plan.revisit_hubs:
                self._wait_for(row)

    def visits_of(self, number: int) -> Visits | None:
        """Return this part for a page that it wants again."""
        return self if number in self._wanted else None

    def conditions(self, number: int) -> dict[str, str]:
        """Return the header fields by which a page is asked for again if it has changed."""
        row = self._wanted.get(number)
        return {} if row is None else conditions(row.etag, row.last_modified)

    def judge(self, visit: PageVisit) -> None:
        """Have the page judged if it has new links.

        Links that it has lost, and what it says now, change nothing; nor does what is the same
        to the byte, or another page's by now.
        """
        crawl, view = self._crawl, visit.view
        if view is None:
            if 200 <= visit.status < 300:
                visit.error = visit.error or "no HTML"
            return
        visit.answer = answer_of(view, visit.download)
        if crawl.duplicates.find(Duplicates.digest(visit.download.body), []) is not None:
            visit.view = None
            return
        visit.links = len(self._new_links(visit))
        if visit.links:
            verdict = verdict_on(crawl, visit, view)
            if verdict is not None:
                visit.relevance, visit.probabilities = verdict.relevance, verdict.probabilities

    def begin_expansion(self, visit: PageVisit) -> JudgedPage | None:
        """Return the page if it has new links, with these."""
        if visit.view is None or not visit.links:
            return None
        return judged_page(self._crawl, visit, visit.view, self._new_links(visit))

    def record(self, visit: PageVisit, now: float) -> Visit:
        """Record what came of a second fetch, or that it was not made."""
        crawl, row, came = self._crawl, self._wanted.pop(visit.number), visit.answer
        crawl.frontier.release(visit.number, now)
        visit.seq, visit.score = crawl.fetched, None
        visit.stamp()
        made = visit.excluded is None
        done = replace(
            row,
            seq=visit.seq,
            status=visit.status if made else None,
            relevance=visit.relevance if visit.link_rows else None,
            fetched_at=visit.fetched_at,
            size=visit.bytes,
            error=visit.error,
            etag=row.etag if came is None else came.etag,
            last_modified=row.last_modified if came is None else came.last_modified,
            links=len(visit.link_rows),
            first_link=visit.link_rows[0].id if visit.link_rows else None,
            memo=visit.memo,
        )
        if made:
            crawl.count_again(visit.status)
        told = [*visit.events, (REVISITED, f"{visit.url}: {_in_words(done)}")]
        events = [(visit.seq, kind, detail) for kind, detail in told]
        crawl.put(VisitRecord(links=visit.link_rows, revisits=[done], events=events))
        self.found_again(visit.number, [link.target for link in visit.link_rows])
        return visit

    def to_revisit(self, hubs: Sequence[int]) -> list[RevisitRow]:
        """Queue those of the top hubs that are due; at most a fifth of all fetches are."""
        crawl = self._crawl
        if not crawl.plan.revisit_hubs:
            return []
        if crawl.web is not None:
            crawl.flush()  # a replay is to find the same whatever the disk does
        due = [row for row in self._last_fetches(hubs) if self._is_due(row)]
        rows = []
        for last in due[: max(1, crawl.plan.distill // 5)]:
            row = RevisitRow(
                id=self._decided,
                url=last.url,
                asked_at=crawl.fetched,
                etag=last.etag,
                last_modified=last.last_modified,
            )
            self._decided += 1
            self._wait_for(row)
            rows.append(row)
        return rows

    def _new_links(self, visit: PageVisit) -> dict[int, str]:
        assert visit.view is not None
        found = followed_links(self._crawl, visit.view, visit.depth, visit.asked)
        urls = self._crawl.urls
        known = set(self.targets_of(visit.number).tolist())
        return {place: url for place, url in found.items() if urls.get(url) not in known}

    def _wait_for(self, row: RevisitRow) -> None:
        self._wanted[row.url] = row
        self._crawl.frontier.push(row.url, self._crawl.urls.host(row.url), np.inf)

    def _is_due(self, last: sa.Row[Any]) -> bool:
        """Tell whether a page was last fetched long enough ago."""
        crawl = self._crawl
        if crawl.web is not None:
            return bool(crawl.fetched - last.seq >= crawl.plan.revisit_hubs)
        at = datetime.fromisoformat(last.fetched_at).timestamp()
        return time.time() - at >= crawl.plan.revisit_hubs

    def _last_fetches(self, hubs: Sequence[int]) -> list[sa.Row[Any]]:
        """Return when and how hubs that do not wait already were last fetched, in their order."""
        idle = [hub for hub in hubs if hub not in self._wanted]
        p, a, r = schema.page.c, schema.answer.c, schema.revisit.c
        first = sa.select(p.url, p.seq, p.fetched_at, a.etag, a.last_modified)
        first = first.outerjoin(schema.answer, a.seq == p.seq).where(p.url.in_(idle))
        again = sa.select(r.url, r.seq, r.fetched_at, r.etag, r.last_modified)
        again = again.where(r.url.in_(idle), r.seq.is_not(None)).order_by(r.id)
        last = {row.url: row for query in (first, again) for row in self._crawl.store.rows(query)}
        return [last[hub] for hub in idle if hub in last]


def any_revisits(store: CrawlStore) -> bool:
    """Tell whether a crawl has fetched pages twice, or was about to."""
    return bool([*store.rows(sa.select(schema.revisit.c.id).limit(1))])


def _rows_of(store: CrawlStore) -> Iterator[RevisitRow]:
    rows = sa.select(schema.revisit).order_by(schema.revisit.c.id)
    return (RevisitRow(**row._mapping) for row in store.rows(rows))


def _in_words(row: RevisitRow) -> str:
    if row.status == NOT_MODIFIED:
        return "not modified"
    if row.error is not None:
        return row.error
    if row.status is not None and not 200 <= row.status < 300:
        return f"status {row.status}"
    return f"{row.links} new links" if row.links else "no new links"
