"""What a worker writes: one transaction at a time, and never twice."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import psycopg
import sqlalchemy as sa

from focuscrawl.store import StoreWriter
from focuscrawl.store.refusals import UNFIT, first_line
from focuscrawl.store.schema import FETCHED, UNFOLLOWED, answer, events, page
from focuscrawl.store.worker_tables import ALIVE, crawl, evidence, worker
from focuscrawl.workers.row_translation import rows_of
from focuscrawl.workers.worker_state import LeaseLostError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Engine

    from focuscrawl.store import VisitRecord
    from focuscrawl.workers.outage import Outage
    from focuscrawl.workers.row_translation import Parts, StoreRows
    from focuscrawl.workers.url_ids import SharedUrlTable

_RELEVANT = 0.5
_AGAIN = 0.5  # seconds until a transaction is tried again
_LAST = 10.0  # seconds for which a worker that is to end tries; a supervisor gives it thirty
# classes of errors: a server that restarts, transactions that stood in each other's way
_PASSING = ("08", "40", "57", "53")
# values out of range, no characters, nothing where something must be, too long for an index
_REFUSED = ("22", "23502", "54000")
#: what the server and the driver raise, through SQLAlchemy and past it
TROUBLE = (sa.exc.DBAPIError, psycopg.Error)

_HOSTS = """
    INSERT INTO host (id, name)
    SELECT * FROM unnest(%s::bigint[], %s::text[]) ON CONFLICT DO NOTHING"""
_URLS = """
    INSERT INTO url (id, url, host, depth, referrer, score, state)
    SELECT * FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::int[], %s::bigint[],
                         %s::float8[], %s::smallint[])
    ON CONFLICT DO NOTHING"""
# of those that may be queued here: what others have met, and put in without a state
_MET = f"""
    UPDATE url SET score = new.score, state = new.state
    FROM unnest(%s::bigint[], %s::float8[], %s::smallint[]) AS new (id, score, state)
    WHERE url.id = new.id AND url.state = {UNFOLLOWED}"""
_LINKS = """
    COPY link (id, source, target, anchor, dom_position, score, model_version) FROM STDIN"""
_CHANGES = f"""
    UPDATE url SET score = new.score, state = new.state
    FROM unnest(%s::bigint[], %s::float8[], %s::smallint[]) AS new (id, score, state)
    WHERE url.id = new.id AND url.state <> {FETCHED}"""


class SharedWriter(StoreWriter):
    """A `StoreWriter` for one of several workers.

    A transaction begins with the worker's own row: who has lost the lease writes nothing any more.
    The row counts transactions, so that one whose answer got lost, because the server went
    down, is found out and not written twice. It ends with the crawl's row, which gives the
    pages their seq and the evidence its order; that row is locked for the shortest time.

    Parameters
    ----------
    engine : of the crawl's database
    urls : numbers of the store
    me : number of the worker
    limited : the crawl has a budget
    parts : see `focuscrawl.strategies.Strategy.parts`
    patience : seconds for which a server may be away
    outage : told of it
    """

    gather = 0.1  #: others look no more often

    def __init__(
        self,
        engine: Engine,
        urls: SharedUrlTable,
        *,
        me: int,
        limited: bool,
        parts: Parts,
        patience: float,
        outage: Outage,
    ) -> None:
        self._urls = urls
        self._me = me
        self._limited = limited
        self._parts = parts
        self._patience = patience
        self._outage = outage
        self._batch = 0
        super().__init__(engine)

    def refuses(self, error: Exception) -> bool:
        """Tell whether an error is for what is in a record; see `StoreWriter.refuses`."""
        return refused_by_postgres(error)

    def commit(self, batch: list[VisitRecord]) -> None:
        """Write records in one transaction, when the server is there."""
        self._batch += 1
        try:
            self._commit(batch)
        except Exception:
            self._batch -= 1  # the server counts no transaction that came to nothing
            raise

    def _commit(self, batch: list[VisitRecord]) -> None:
        rows = rows_of(batch, self._urls, self._me, self._parts)
        began = time.monotonic()
        while True:
            try:
                with self._engine.begin() as connection:
                    self._write(connection, rows, batch)
            except TROUBLE as error:
                patience = _LAST if self._closing.is_set() else self._patience
                if not passes(error) or time.monotonic() - began > patience:
                    raise
                self._outage.failed(first_line(error))
                time.sleep(_AGAIN)
            else:
                self._outage.over()
                return

    def _write(
        self, connection: Connection, rows: StoreRows, batch: Sequence[VisitRecord]
    ) -> None:
        if not self._begin(connection, len(rows.pages)):
            return  # it was written, and the server went down before it could say so
        cursor = _cursor(connection)
        if rows.hosts:
            cursor.execute(_HOSTS, _columns(rows.hosts))
        if rows.urls or rows.strange:
            # in one order by all workers, so that they do not wait in a circle
            cursor.execute(_URLS, _columns(sorted([*rows.urls, *rows.strange], key=itemgetter(0))))
        if rows.urls:
            numbers, *_, scores, states = _columns(rows.urls)
            cursor.execute(_MET, [numbers, scores, states])
        if rows.links:
            with cursor.copy(_LINKS) as copy:
                for link in rows.links:
                    copy.write_row(link)
        if rows.changes:
            numbers = sorted(rows.changes)  # in one order by all workers
            scores, states = _columns([rows.changes[number] for number in numbers])
            cursor.execute(_CHANGES, [numbers, scores, states])
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        happened = [
            {"at": at, "seq": seq, "kind": kind, "detail": detail}
            for record in batch
            for seq, kind, detail in record.events
        ]
        if happened:
            connection.execute(sa.insert(events), happened)
        if rows.pages or rows.evidence:
            self._end(connection, rows)

    def _begin(self, connection: Connection, pages: int) -> bool:
        """Count the transaction; False if it is in the store already."""
        counted = connection.execute(
            sa.update(worker)
            .where(worker.c.id == self._me, worker.c.state == ALIVE)
            .where(worker.c.batch == self._batch - 1)
            .values(
                batch=self._batch,
                fetched=worker.c.fetched + pages,
                outstanding=worker.c.outstanding - (pages if self._limited else 0),
            )
        )
        if counted.rowcount:
            return True
        mine = sa.select(worker.c.batch, worker.c.state).where(worker.c.id == self._me)
        row = connection.execute(mine).one()
        if row.batch == self._batch:
            return False
        raise LeaseLostError

    def _end(self, connection: Connection, rows: StoreRows) -> None:
        """Give pages and evidence their numbers; nobody else can until this is committed."""
        pages = rows.pages
        relevant = [i for i, each in enumerate(pages, 1) if each["relevance"] > _RELEVANT]
        changed = {
            "fetched": crawl.c.fetched + len(pages),
            "posted": crawl.c.posted + len(rows.evidence),
            "relevance": crawl.c.relevance + sum(each["relevance"] for each in pages),
        }
        if relevant:
            changed["last_relevant"] = crawl.c.fetched + relevant[-1]
        after = connection.execute(
            sa.update(crawl).values(changed).returning(crawl.c.fetched, crawl.c.posted)
        ).one()
        first = after.fetched - len(pages) + 1
        cursor = _cursor(connection)
        _copy(cursor, page, pages, first)
        _copy(cursor, answer, rows.answers, first)
        _copy(cursor, evidence, rows.evidence, after.posted - len(rows.evidence) + 1)


def _copy(cursor: Any, table: sa.Table, rows: Sequence[dict[str, Any] | None], first: int) -> None:
    """Insert rows that are numbered from `first` on; None is left out, with its number."""
    there = [(number, row) for number, row in enumerate(rows, first) if row is not None]
    if not there:
        return
    key = "id" if "id" in table.c else "seq"
    others = [column.name for column in table.columns if column.name != key]
    with cursor.copy(f"COPY {table.name} ({key}, {', '.join(others)}) FROM STDIN") as copy:
        for number, row in there:
            copy.write_row([number, *[row[name] for name in others]])


def passes(error: Exception) -> bool:
    """Tell whether what went wrong may be over soon: the server is away, or was busy."""
    said = getattr(error, "orig", error)
    state = getattr(said, "sqlstate", None)
    if state is None:  # the driver's own
        return not isinstance(said, (psycopg.DataError, psycopg.ProgrammingError))
    return bool(state.startswith(_PASSING))


def refused_by_postgres(error: Exception) -> bool:
    """Tell whether PostgreSQL, or its driver, refuses values that are to be written.

    Full disks, lost connections, missing rights and violated keys are no such errors.
    """
    said = getattr(error, "orig", error)
    state = getattr(said, "sqlstate", None)
    if state is None:
        return isinstance(said, (*UNFIT, psycopg.DataError, psycopg.ProgrammingError))
    return bool(state.startswith(_REFUSED))


def _cursor(connection: Connection) -> Any:
    driver: Any = connection.connection.driver_connection
    return driver.cursor()


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
