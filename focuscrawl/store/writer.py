"""Writes to the crawl store, off the event loop."""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, delete, insert, update

from focuscrawl.store import schema

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from focuscrawl.store.records import VisitRecord

_CHANGE = (
    update(schema.url)
    .where(schema.url.c.id == bindparam("_id"))
    .values(score=bindparam("_score"), state=bindparam("_state"))
)


class StoreWriter:
    """Commits records in the order they are put, those of some moments in one transaction.

    A record is committed whole or not at all, 50 ms after it was put or little later. Records put
    while a transaction is being written go into the next one (group commit), so a slow disk
    makes transactions larger instead of holding up the event loop.

    Parameters
    ----------
    engine : of the crawl store
    backlog : records that may wait; `full` tells the crawl to hold back beyond it
    """

    gather = 0.05  #: seconds in which records are gathered for a transaction: it costs a page's

    def __init__(self, engine: Engine, backlog: int = 256) -> None:
        self._engine = engine
        self._backlog = backlog
        self._queue: queue.SimpleQueue[VisitRecord | threading.Event | None] = queue.SimpleQueue()
        self._failure: BaseException | None = None
        self._closing = threading.Event()
        self._put = self._written = 0
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
        self._put += 1
        self._queue.put(record)

    @property
    def put_so_far(self) -> int:
        """Records put in so far."""
        return self._put

    @property
    def written(self) -> int:
        """Records done with, in the order they were put; not written after a failure."""
        return self._written

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
                    self.commit(batch)
                except Exception as error:
                    self._failure = error
            self._written += len(batch)
            for each in reached:
                each.set()
            if record is not None:
                record = self._queue.get()

    def commit(self, batch: list[VisitRecord]) -> None:
        """Write records in one transaction."""
        with self._engine.begin() as connection:
            _write(connection, batch)


def _write(connection: Connection, batch: list[VisitRecord]) -> None:
    """Insert parents before children: hosts, URLs, pages, links; then what changed."""
    hosts = [{"id": i, "name": name} for record in batch for i, name in record.hosts]
    urls = [row._asdict() for record in batch for row in record.urls]
    pages = [dataclasses.asdict(record.page) for record in batch if record.page is not None]
    links = [row._asdict() for record in batch for row in record.links]
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    events = [
        {"at": at, "seq": seq, "kind": kind, "detail": detail}
        for record in batch
        for seq, kind, detail in record.events
    ]
    memos = [
        {"seq": record.page.seq, "data": record.memo}
        for record in batch
        if record.page is not None and record.memo is not None
    ]
    answers = [
        {"seq": record.page.seq, **dataclasses.asdict(record.answer)}
        for record in batch
        if record.page is not None and record.answer is not None
    ]
    revisits = {row.id: dataclasses.asdict(row) for record in batch for row in record.revisits}
    if revisits:
        earlier = delete(schema.revisit).where(schema.revisit.c.id.in_(revisits))
        connection.execute(earlier)
    models = [dataclasses.asdict(record.model) for record in batch if record.model is not None]
    if models:
        for model in models[:-1]:
            model["state"] = None
        connection.execute(update(schema.models).values(state=None))
    for table, rows in (
        (schema.host, hosts),
        (schema.url, urls),
        (schema.page, pages),
        (schema.link, links),
        (schema.memo, memos),
        (schema.answer, answers),
        (schema.revisit, [*revisits.values()]),
        (schema.models, models),
        (schema.events, events),
    ):
        if rows:
            connection.execute(insert(table), rows)
    changes = [
        {"_id": i, "_score": score, "_state": state}
        for record in batch
        for i, score, state in record.changes
    ]
    if changes:
        connection.execute(_CHANGE, changes)
