"""Records that the database refuses for what is in them, and what is written of them all the same.

A number that is too large, half of a character, a text with a NUL in it: what came of one page
must not end the crawl of all others. A database that is full or damaged is another matter:
that is no fault of a record, and nothing is written any more.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING

from focuscrawl.store.records import PageRow, VisitRecord

if TYPE_CHECKING:
    from focuscrawl.store.records import RevisitRow

#: what the error of such a page begins with
NOT_STORED = "not stored"

#: raised for values that cannot be handed over
_UNFIT = (
    *(OverflowError, UnicodeError),
    *(sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.InterfaceError),
)


def refused(error: Exception) -> bool:
    """Tell whether SQLite, or its driver, refuses values that are to be written.

    Other violations of the schema than a missing value (a NaN is none) are not for what somebody
    said: store and crawl disagree about what is there already.
    """
    if isinstance(error, sqlite3.IntegrityError):
        return str(error).startswith("NOT NULL")
    return isinstance(error, _UNFIT)


def first_line(error: BaseException) -> str:
    """Return the first line of what the driver says."""
    lines = str(getattr(error, "orig", error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def without_contents(record: VisitRecord, why: str) -> VisitRecord:
    """Return what is to be kept of a record that was refused.

    Its fetches were made: they keep their places, with `why` in place of what came. URLs and
    hosts keep the numbers that later records name them by, and events are told.
    """
    error = f"{NOT_STORED}: {_plain(why)}"
    return VisitRecord(
        page=None if record.page is None else _page(record.page, error),
        hosts=record.hosts,
        urls=record.urls,
        changes=record.changes,
        revisits=[_revisit(row, error) for row in record.revisits],
        events=[(seq, kind, _plain(detail)) for seq, kind, detail in record.events],
    )


def _page(page: PageRow, error: str) -> PageRow:
    return PageRow(
        seq=page.seq,
        url=page.url,
        status=0,
        relevance=0.0,
        topic=None,
        score=page.score,
        fetched_at=page.fetched_at,
        content_type=None,
        size=0,
        error=error,
    )


def _revisit(row: RevisitRow, error: str) -> RevisitRow:
    bare = replace(row, etag=None, last_modified=None, size=0, links=0, first_link=None, memo=None)
    if row.seq is None:  # it waits
        return bare
    return replace(bare, status=0, relevance=None, error=error)


def _plain(text: str) -> str:
    """Return a text that SQLite takes as it is."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")
