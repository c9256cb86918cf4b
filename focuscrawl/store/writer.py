"""Writes to the crawl store, off the event loop."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from focuscrawl.store import schema
from focuscrawl.store.refusals import first_line, refused, without_contents

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

    from focuscrawl.store.records import VisitRecord


logger = logging.getLogger(__name__)


def _insertion(table: Table) -> str:
    columns = ", ".join(table.c.keys())
    return f"INSERT INTO {table.name} ({columns}) VALUES ({', '.join('?' * len(table.c))})"


_INSERT = {
    table.name: _insertion(table)
    for table in (
        schema.host,
        schema.url,
        schema.page,
        schema.link,
        schema.memo,
        schema.answer,
        schema.revisit,
        schema.models,
    )
}
_PAGE = attrgetter(*schema.page.c.keys())
_ANSWER = attrgetter(*schema.answer.c.keys()[1:])
_REVISIT = attrgetter(*schema.revisit.c.keys())
_MODEL = attrgetter(*schema.models.c.keys())


class StoreWriter:
    """Commits records in the order they are put, those of some moments in one transaction.

    A record is committed whole or not at all, 50 ms after it was put or little later. Records put
    while a transaction is being written go into the next one (group commit), so a slow disk
    makes transactions larger instead of holding up the event loop. One that the database refuses
    for what is in it is written without that; see `focuscrawl.store.refusals`.

    Parameters
    ----------
    engine : of the crawl store, an SQLite file
    backlog : records that may wait; `full` tells the crawl to hold back beyond it
    """

    gather = 0.05  #: seconds in which records are gathered for a transaction: it costs a page's

    def __init__(self, engine: Engine, backlog: int = 256) -> None:
        self._engine = engine
        self._backlog = backlog
        self._queue: queue.SimpleQueue[VisitRecord | threading.Event | None] = queue.SimpleQueue()
        self._failure: BaseException | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    @property
    def full(self) -> bool:
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
            self._closing.wait(self.gather)
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
            if not refused(error):
                raise
            why = first_line(error)
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
        with self._engine.begin() as connection:
            _write(connection, batch)


def _write(connection: Connection, batch: list[VisitRecord]) -> None:
    """Insert parents before children: hosts, URLs, pages, links; then what changed.

    Through the driver's own cursor: a row costs SQLAlchemy five times what it costs SQLite, and
    holds the interpreter lock meanwhile.
    """
    cursor = connection.connection.cursor()
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    visits = [(record.page, record) for record in batch if record.page is not None]
    memos = [(page.seq, record.memo) for page, record in visits if record.memo is not None]
    answers = [(page.seq, *_ANSWER(record.answer)) for page, record in visits if record.answer]
    revisits = {row.id: _REVISIT(row) for record in batch for row in record.revisits}
    if revisits:
        cursor.executemany("DELETE FROM revisit WHERE id = ?", [(number,) for number in revisits])
    models = [_MODEL(record.model) for record in batch if record.model is not None]
    if models:  # only the last one keeps its state, which comes last
        models[:-1] = [(*row[:-1], None) for row in models[:-1]]
        cursor.execute("UPDATE models SET state = NULL WHERE state IS NOT NULL")
    tables: tuple[tuple[Table, list[Any]], ...] = (
        (schema.host, [row for record in batch for row in record.hosts]),
        (schema.url, [row for record in batch for row in record.urls]),
        (schema.page, [_PAGE(page) for page, _ in visits]),
        (schema.link, [row for record in batch for row in record.links]),
        (schema.memo, memos),
        (schema.answer, answers),
        (schema.revisit, [*revisits.values()]),
        (schema.models, models),
    )
    for table, rows in tables:
        if rows:
            cursor.executemany(_INSERT[table.name], rows)
    events = [(at, *event) for record in batch for event in record.events]
    cursor.executemany("INSERT INTO events (at, seq, kind, detail) VALUES (?, ?, ?, ?)", events)
    changes = [
        (score, state, number) for record in batch for number, score, state in record.changes
    ]
    cursor.executemany("UPDATE url SET score = ?, state = ? WHERE id = ?", changes)
    cursor.close()
