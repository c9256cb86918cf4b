"""Top hubs are fetched once more, for the links that are new on them (METHODS 7; F99 3.3)."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from focuscrawl.crawl.crawl import Crawl
from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.finding import Finding, answer_of, visit_of
from focuscrawl.crawl.parts.revisit_policy import conditions
from focuscrawl.crawl.visit import NOT_MODIFIED, Download
from focuscrawl.store import RevisitRow, VisitRecord, schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from focuscrawl.crawl.visit import Fetch, Visit
    from focuscrawl.page import PageView
    from focuscrawl.store import CrawlStore

#: kind of the event that tells of a page fetched again
REVISITED = "revisited"


class RevisitingCrawl(Crawl):
    """A crawl that fetches some of its pages twice or more.

    Whenever the distiller has run, its top hubs whose last fetch is long enough ago wait in the
    frontier like start URLs. A second fetch is a row of the table ``revisit``, not of ``page``:
    the page keeps its one row and place, and counts nowhere else. It counts against the budget.
    What was not among the links of the page is scored by the strategy as the links of any page
    are, by the critic's judgement of the page as it is now.

    The rows are written when it is decided, with the event ``distilled`` in one transaction,
    and again when it is over: a crawl that was killed knows what it still has to do.
    """

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._wanted: dict[int, RevisitRow] = {}  # waiting or under way
        self._decided = 0  # rows so far
        self._made = 0  # fetches that were
        self._unmodified = 0  # of these, answered "not modified"

    def start(self, seeds: Sequence[str]) -> None:
        """Begin a run: take up what earlier ones have left undone."""
        for row in _rows_of(self.store):
            self._decided = max(self._decided, row.id + 1)
            if row.seq is not None:
                self._count(row)
            elif self.plan.revisit_hubs:
                self._wait_for(row)
        super().start(seeds)

    @property
    def spent(self) -> int:
        """Fetches as they count against the budget, second ones among them."""
        saved = (self._not_modified + self._unmodified) * (1.0 - self.plan.not_modified_cost)
        return self.fetched + self._made - int(saved)

    def next(self, now: float) -> Fetch | None:
        """Give out the best URL whose host has room; see `Crawl.next`."""
        fetch = super().next(now)
        again = fetch is not None and fetch.id in self._wanted
        return replace(fetch, again=True) if fetch is not None and again else fetch

    def conditions(self, number: int) -> dict[str, str]:
        """Return the header fields by which a page is asked for again if it has changed."""
        row = self._wanted.get(number)
        return {} if row is None else conditions(row.etag, row.last_modified)

    def exclude(self, number: int, why: str, now: float) -> None:
        """Leave a URL that was given out unfetched; see `Crawl.exclude`."""
        if number in self._wanted:
            self._end(number, None, Finding(error=why), now)
        else:
            super().exclude(number, why, now)

    def fail(self, number: int, error: str, now: float) -> Visit:
        """Record a fetch that brought no answer."""
        if number in self._wanted:
            return self._end(number, Download(status=0), Finding(error=error), now)
        return super().fail(number, error, now)

    def visit(self, number: int, fetched: Download, view: PageView | None, now: float) -> Visit:
        """Take in what came for a URL given out; see `Crawl.visit`.

        Of a page fetched again, links that it has lost, and what it says now, change nothing.
        """
        if number not in self._wanted:
            return super().visit(number, fetched, view, now)
        page = Finding()
        if view is not None:
            self._look_again(number, fetched, view, page)
        elif 200 <= fetched.status < 300:
            page.error = "no HTML"
        return self._end(number, fetched, page, now)

    def _look_again(self, number: int, fetched: Download, view: PageView, page: Finding) -> None:
        """Have the links scored that the page did not have, unless it is the same as before."""
        page.answer = answer_of(view, fetched)
        if self.duplicates.find(Duplicates.digest(fetched.body), []) is not None:
            return  # to the byte, or another page's by now
        found = self._followed(number, view)
        page.links = len(found)
        if found:
            judgement = self.critic.judge([view])
            page.relevance = float(judgement.relevance[0])
            if judgement.probabilities is not None:
                page.probabilities = judgement.probabilities[0]
            self._expand(number, view, page)

    def _followed(self, number: int, view: PageView) -> dict[int, str]:
        found = super()._followed(number, view)
        if number not in self._wanted:
            return found
        known = set(self.distilling.targets_of(number).tolist())
        return {place: url for place, url in found.items() if self.urls.get(url) not in known}

    def _end(self, number: int, fetched: Download | None, page: Finding, now: float) -> Visit:
        """Record what came of a second fetch; None: it was not made."""
        row = self._wanted.pop(number)
        del self.in_flight[number]
        self.frontier.release(number, now)
        came = page.answer
        done = replace(
            row,
            seq=self.fetched,
            status=None if fetched is None else fetched.status,
            relevance=page.relevance if page.link_rows else None,
            fetched_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            size=0 if fetched is None else fetched.size,
            error=page.error,
            etag=row.etag if came is None else came.etag,
            last_modified=row.last_modified if came is None else came.last_modified,
            links=len(page.link_rows),
            first_link=page.link_rows[0].id if page.link_rows else None,
            memo=page.memo,
        )
        self._count(done)
        told = (self.fetched, REVISITED, f"{self.urls[number]}: {_in_words(done)}")
        self._put(VisitRecord(links=page.link_rows, revisits=[done], events=[told]))
        self.distilling.found_again(number, [link.target for link in page.link_rows])
        shown = page.row(self.fetched, number, None, fetched or Download(status=0))
        return visit_of(shown, self.urls)

    def _count(self, row: RevisitRow) -> None:
        self._made += row.status is not None
        self._unmodified += row.status == NOT_MODIFIED

    def _put(self, record: VisitRecord) -> None:
        hubs = self.distilling.take_hubs()
        if hubs and self.plan.revisit_hubs:  # the record is that of the distillation
            record.revisits.extend(self._decide(hubs))
        super()._put(record)

    def _decide(self, hubs: Sequence[int]) -> list[RevisitRow]:
        """Queue those of the top hubs that are due; at most a fifth of all fetches are."""
        if self.web is not None:
            self.flush()  # a replay is to find the same whatever the disk does
        due = [row for row in self._last_fetches(hubs) if self._is_due(row)]
        rows = []
        for last in due[: max(1, self.plan.distill // 5)]:
            row = RevisitRow(
                id=self._decided,
                url=last.url,
                asked_at=self.fetched,
                etag=last.etag,
                last_modified=last.last_modified,
            )
            self._decided += 1
            self._wait_for(row)
            rows.append(row)
        return rows

    def _wait_for(self, row: RevisitRow) -> None:
        self._wanted[row.url] = row
        self.frontier.push(row.url, self.urls.host(row.url), np.inf)

    def _is_due(self, last: sa.Row[Any]) -> bool:
        """Tell whether a page was last fetched long enough ago."""
        if self.web is not None:
            return bool(self.fetched - last.seq >= self.plan.revisit_hubs)
        at = datetime.fromisoformat(last.fetched_at).timestamp()
        return time.time() - at >= self.plan.revisit_hubs

    def _last_fetches(self, hubs: Sequence[int]) -> list[sa.Row[Any]]:
        """Return when and how hubs that do not wait already were last fetched, in their order."""
        idle = [hub for hub in hubs if hub not in self._wanted]
        p, a, r = schema.page.c, schema.answer.c, schema.revisit.c
        first = sa.select(p.url, p.seq, p.fetched_at, a.etag, a.last_modified)
        first = first.outerjoin(schema.answer, a.seq == p.seq).where(p.url.in_(idle))
        again = sa.select(r.url, r.seq, r.fetched_at, r.etag, r.last_modified)
        again = again.where(r.url.in_(idle), r.seq.is_not(None)).order_by(r.id)
        last = {row.url: row for query in (first, again) for row in self.store.rows(query)}
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
