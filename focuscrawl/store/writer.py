"""Writes records to the crawl store in a background thread.

If the database refuses a value of a page, such as a number that is too large, the writer stores
the fetch without the page's contents, and the crawl continues. If the database is full or damaged,
the writer stops.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from focuscrawl.foundation.model_folder import error_message
from focuscrawl.store.schema import INSERT, PageRow, VisitRecord

if TYPE_CHECKING:
    from focuscrawl.store.crawl_store import CrawlStore
    from focuscrawl.store.schema import ModelRow, RevisitRow


logger = logging.getLogger(__name__)

_CHANGE_URL = "UPDATE url SET score = ?, state = ? WHERE id = ?"

#: prefix of the error of a page whose contents were refused
NOT_STORED = "not stored"

#: errors that values which SQLite cannot represent raise
_UNFIT = (
    *(OverflowError, UnicodeError),
    *(sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.InterfaceError),
)


class StoreWriter:
    """Writes records to the store in the order of `put`, several records in one transaction.

    A record is committed completely or not at all, about 50 ms after the call of `put`. Records
    that arrive during a transaction belong to the next transaction (group commit). So a slow disk
    makes transactions larger, but does not block the event loop. If the database refuses a record,
    the writer writes the record without the contents of its pages (`without_contents`).

    Parameters
    ----------
    backlog : int
        Number of queued records from which on `is_full` asks the crawl to pause.
    """

    #: seconds to collect records, because a transaction costs as much time as fetching a page
    commit_delay = 0.05

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
        """Whether so many records wait to be written that the crawl should pause fetching."""
        return self._queue.qsize() >= self._backlog

    @property
    def failure(self) -> BaseException | None:
        """Error that stopped the writer; None while the writer has not failed."""
        return self._failure

    def put(self, record: VisitRecord) -> None:
        """Queue `record` for writing, and return without waiting."""
        self._queue.put(record)

    def flush(self) -> None:
        """Wait until all queued records are committed or have failed."""
        reached = threading.Event()
        self._queue.put(reached)
        reached.wait()

    def close(self) -> None:
        """Commit all queued records and stop the thread; further calls do nothing."""
        if not self._closing.is_set():
            self._closing.set()
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        record = self._queue.get()
        while record is not None:
            batch: list[VisitRecord] = []
            reached: list[threading.Event] = []
            # sleep, because waking the thread for each record would slow the event loop
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
                    self._write_batch(batch)
                except Exception as error:
                    self._failure = error
            for each in reached:
                each.set()
            if record is not None:
                record = self._queue.get()

    def _write_batch(self, batch: list[VisitRecord]) -> None:
        """Commit records; halve the batch until a refused record is alone."""
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
            self._write_batch(batch[:middle])
            self._write_batch(batch[middle:])
            return
        page = batch[0].page
        what = "URLs and events" if page is None else f"the page of fetch {page.seq}"
        logger.error("cannot store %s, continuing without: %s", what, why)
        self._commit([without_contents(batch[0], why)])

    def _commit(self, batch: list[VisitRecord]) -> None:
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
    """Replace page relevance, scores and models in one transaction for a new critic.

    Parameters
    ----------
    pages, links, memos, urls : iterable of tuple
        Rows to change, see `focuscrawl.crawl.rejudging.RejudgedCrawl`.
    models : list of ModelRow
        Models that replace all stored models.
    identity : mapping of str to str
        Changed or new arguments of the crawl.
    event : (int, str, str)
        Number of fetched pages, kind and detail of an event to add.
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
    """Return whether an SQLite error means that a value of a record is invalid.

    NULL in a column that must not be NULL also counts as an invalid value, because SQLite stores
    NaN as NULL. Other violations of the database schema are program errors, because the store then
    contradicts the crawl's data in memory.
    """
    if isinstance(error, sqlite3.IntegrityError):
        return str(error).startswith("NOT NULL")
    return isinstance(error, _UNFIT)


def without_contents(record: VisitRecord, why: str) -> VisitRecord:
    """Return a record that SQLite refused, without the contents of its pages.

    The fetches keep their positions, and `why` becomes the error message of the fetches. URLs and
    hosts keep their ids, because later records refer to the ids. The events in the record are not
    changed.
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
    if row.seq is None:  # still queued
        return bare
    return bare._replace(status=0, relevance=None, error=error)


def _plain(text: str) -> str:
    """Replace surrogates and remove NUL characters, which SQLite cannot store."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")


def _write(connection: sqlite3.Connection, batch: list[VisitRecord]) -> None:
    """Insert parents before children: hosts, URLs, pages, links."""
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
    """Return the rows of models; only the last one keeps its state."""
    return [*(row._replace(state=None) for row in models[:-1]), *models[-1:]]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
