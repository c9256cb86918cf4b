"""Writes to the crawl store, off the event loop; records that the database refuses.

A number that is too large, half of a character: what came of one page must not end the crawl of
all others. A database that is full or damaged is no fault of a record: nothing is written any
more.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import sqlite3
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from focuscrawl.foundation.model_folder import error_message
from focuscrawl.store.schema import INSERT, PageRow, VisitRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from focuscrawl.store.crawl_store import CrawlStore
    from focuscrawl.store.schema import ModelRow, RevisitRow


logger = logging.getLogger(__name__)

_CHANGE_URL = "UPDATE url SET score = ?, state = ? WHERE id = ?"

#: what the error of such a page begins with
NOT_STORED = "not stored"

#: raised for values that cannot be handed over
_UNFIT = (
    *(OverflowError, UnicodeError),
    *(sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.InterfaceError),
)


class StoreWriter:
    """Commits records in the order they are put, those of some moments in one transaction.

    A record is committed whole or not at all, 50 ms after it was put or little later. Records put
    while a transaction is being written go into the next one (group commit), so a slow disk
    makes transactions larger instead of holding up the event loop. One that the database refuses
    for what is in it is written without that (`without_contents`).

    Parameters
    ----------
    store : of the crawl
    backlog : records that may wait; `is_full` tells the crawl to hold back beyond it
    """

    commit_delay = (
        0.05  #: seconds in which records are gathered for a transaction: it costs a page's
    )

    def __init__(self, store: CrawlStore, backlog: int = 256) -> None:
        self._store = store
        self._backlog = backlog
        self._queue: queue.SimpleQueue[VisitRecord | threading.Event | None] = queue.SimpleQueue()
        self._failure: BaseException | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    @property
    def is_full(self) -> bool:
        """True while so many records wait that the crawl should not fetch more."""
        return self._queue.qsize() >= self._backlog

    @property
    def failure(self) -> BaseException | None:
        """What stopped the writer; None while it works. Nothing after it was written."""
        return self._failure

    def put(self, record: VisitRecord) -> None:
        """Queue `record`; returns at once."""
        self._queue.put(record)

    def flush(self) -> None:
        """Wait until everything put so far is committed, or cannot be."""
        reached = threading.Event()
        self._queue.put(reached)
        reached.wait()

    def close(self) -> None:
        """Wait until everything is committed. May be called twice."""
        if not self._closing.is_set():
            self._closing.set()
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        record = self._queue.get()
        while record is not None:
            batch: list[VisitRecord] = []
            reached: list[threading.Event] = []
            # asleep, not waiting for each: to be woken costs the event loop more than to put
            self._closing.wait(self.commit_delay)
            with contextlib.suppress(queue.Empty):
                while record is not None:
                    if isinstance(record, threading.Event):
                        reached.append(record)
                    else:
                        batch.append(record)
                    record = self._queue.get_nowait()
            if self._failure is None and batch:
                try:
                    self._write_down(batch)
                except Exception as error:
                    self._failure = error
            for each in reached:
                each.set()
            if record is not None:
                record = self._queue.get()

    def _write_down(self, batch: list[VisitRecord]) -> None:
        """Commit records; a refused one by itself, so that the others are kept as they are."""
        try:
            self._commit(batch)
        except Exception as error:
            if not is_refused(error):
                raise
            why = error_message(error)
        else:
            return
        if len(batch) > 1:
            middle = len(batch) // 2
            self._write_down(batch[:middle])
            self._write_down(batch[middle:])
            return
        page = batch[0].page
        what = "what was noted" if page is None else f"what came of fetch {page.seq}"
        logger.error("%s cannot be stored: %s", what, why)
        self._commit([without_contents(batch[0], why)])

    def _commit(self, batch: list[VisitRecord]) -> None:
        """Write records in one transaction, or none of them."""
        with self._store.connection() as connection:
            _write(connection, batch)


def rewrite(
    store: CrawlStore,
    *,
    pages: Iterable[tuple[int, float, str | None]],
    links: Iterable[tuple[int, float | None, int]],
    memos: Iterable[tuple[int, bytes | None]],
    urls: Iterable[tuple[int, float | None, int]],
    models: list[ModelRow],
    identity: Mapping[str, str],
    event: tuple[int, str, str],
) -> None:
    """Write what another critic makes of a crawl; all of it or nothing.

    Parameters
    ----------
    pages, links, memos, urls : rows to change, see `focuscrawl.crawl.rejudging.RejudgedCrawl`
    models : they take the place of those that there are
    identity : what to change of what the crawl was begun with, or to add to it
    event : (seq, kind, detail)
    """
    memos = list(memos)
    kept = [(seq, data) for seq, data in memos if data is not None]
    with store.connection() as connection:
        change = connection.executemany
        change("UPDATE page SET relevance = ?, topic = ? WHERE seq = ?", map(_key_last, pages))
        change("UPDATE link SET score = ?, model_version = ? WHERE id = ?", map(_key_last, links))
        change(_CHANGE_URL, map(_key_last, urls))
        change("DELETE FROM memo WHERE seq = ?", [(seq,) for seq, _ in memos])
        change(INSERT["memo"], kept)
        connection.execute("DELETE FROM models")
        change(INSERT["models"], _only_last_state(models))
        change("DELETE FROM meta WHERE key = ?", [(key,) for key in identity])
        change(INSERT["meta"], identity.items())
        connection.execute(INSERT["events"], (_now(), *event))


def is_refused(error: Exception) -> bool:
    """Tell whether SQLite, or its driver, refuses values that are to be written.

    Other violations of the schema than a missing value (a NaN is none) are not for what somebody
    said: store and crawl disagree about what is there already.
    """
    if isinstance(error, sqlite3.IntegrityError):
        return str(error).startswith("NOT NULL")
    return isinstance(error, _UNFIT)


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
    bare = row._replace(etag=None, last_modified=None, size=0, links=0, first_link=None, memo=None)
    if row.seq is None:  # it waits
        return bare
    return bare._replace(status=0, relevance=None, error=error)


def _plain(text: str) -> str:
    """Return a text that SQLite takes as it is."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")


def _write(connection: sqlite3.Connection, batch: list[VisitRecord]) -> None:
    """Insert parents before children: hosts, URLs, pages, links; then what changed."""
    at = _now()
    visits = [(record.page, record) for record in batch if record.page is not None]
    revisits = {row.id: row for record in batch for row in record.revisits}
    models = [record.model for record in batch if record.model is not None]
    tables: dict[str, list[Any]] = {
        "host": [row for record in batch for row in record.hosts],
        "url": [row for record in batch for row in record.urls],
        "page": [page for page, _ in visits],
        "link": [row for record in batch for row in record.links],
        "memo": [(page.seq, record.memo) for page, record in visits if record.memo is not None],
        "answer": [(page.seq, *record.answer) for page, record in visits if record.answer],
        "revisit": [*revisits.values()],
        "models": _only_last_state(models),
        "events": [(at, *event) for record in batch for event in record.events],
    }
    if revisits:
        connection.executemany("DELETE FROM revisit WHERE id = ?", [(row,) for row in revisits])
    if models:
        connection.execute("UPDATE models SET state = NULL WHERE state IS NOT NULL")
    for table, rows in tables.items():
        if rows:
            connection.executemany(INSERT[table], rows)
    changes = [change for record in batch for change in record.changes]
    connection.executemany(_CHANGE_URL, map(_key_last, changes))


def _key_last(row: tuple[Any, ...]) -> tuple[Any, ...]:
    key, *values = row
    return *values, key


def _only_last_state(models: list[ModelRow]) -> list[tuple[Any, ...]]:
    """Return the rows of lessons: the last one alone keeps its state."""
    return [*(row._replace(state=None) for row in models[:-1]), *models[-1:]]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
