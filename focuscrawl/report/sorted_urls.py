"""The URLs of a crawl in the orders that its store has no index for, in a file of their own.

Re-scoring changes the score of every URL that waits: an index of the store itself would slow the
crawl down. So numbers, hosts and scores are copied, sorted, and joined with the store when rows
are read; texts stay where they are. A copy says how the crawl was when it was made.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import sqlalchemy as sa

from focuscrawl.store.schema import FETCHED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Connection

    from focuscrawl.store import CrawlStore

#: what `sorted.page.kind` says came of a fetch
KINDS = ("page", "duplicate", "redirect", "nothing")
_FIRST = "9e999"  # of what has no score: a seed comes before every link

_TABLES = f"""
CREATE TABLE sorted.host (place INTEGER PRIMARY KEY, id INTEGER NOT NULL, name TEXT NOT NULL);
INSERT INTO sorted.host (id, name) SELECT id, name FROM main.host ORDER BY name;
CREATE INDEX sorted.host_id ON host (id, place);
CREATE TABLE sorted.page (seq INTEGER PRIMARY KEY, host INTEGER, relevance REAL, score REAL,
                          status INTEGER, kind INTEGER);
INSERT INTO sorted.page
    SELECT p.seq, (SELECT place FROM sorted.host WHERE id = u.host), p.relevance,
           coalesce(p.score, {_FIRST}), p.status,
           CASE WHEN p.duplicate_of IS NOT NULL THEN 1 WHEN p.digest IS NOT NULL THEN 0
                WHEN p.status BETWEEN 300 AND 399 OR p.error LIKE 'meta refresh%' THEN 2
                ELSE 3 END
    FROM main.page p JOIN main.url u ON u.id = p.url ORDER BY p.seq;
CREATE INDEX sorted.page_relevance ON page (relevance, seq, host, status, kind);
CREATE INDEX sorted.page_score ON page (score, seq, host, status, kind, relevance);
CREATE INDEX sorted.page_host ON page (host, seq, status, kind, relevance);
CREATE TABLE sorted.repeat (original INTEGER, seq INTEGER, PRIMARY KEY (original, seq))
    WITHOUT ROWID;
INSERT INTO sorted.repeat SELECT duplicate_of, seq FROM main.page WHERE duplicate_of IS NOT NULL;
CREATE TABLE sorted.waiting (id INTEGER PRIMARY KEY, host INTEGER, score REAL, state INTEGER);
INSERT INTO sorted.waiting
    SELECT u.id, h.place, coalesce(u.score, {_FIRST}), u.state
    FROM main.url u JOIN sorted.host h ON h.id = u.host WHERE u.state <> {FETCHED} ORDER BY u.id;
CREATE INDEX sorted.waiting_score ON waiting (score, id, host, state);
CREATE INDEX sorted.waiting_host ON waiting (host, id, state, score);
CREATE TABLE sorted.total AS
    SELECT (SELECT count(*) FROM sorted.page) AS pages,
           (SELECT count(*) FROM sorted.waiting) AS waiting;
"""


def sort_urls(store: CrawlStore, path: Path) -> None:
    """Write the sorted copy of a crawl to `path`, where nothing is yet.

    It takes some seconds for a million URLs, and none of the interpreter's time; memory does
    not grow with the crawl.

    Parameters
    ----------
    store : of a crawl in a folder, which may be running
    """
    with closing(store.reopened()) as reading, reading.engine.connect() as connection:
        # not kept if the machine stops: nothing is lost with it
        _attach(connection, path)
        for pragma in ("journal_mode = OFF", "synchronous = OFF"):
            connection.exec_driver_sql(f"PRAGMA sorted.{pragma}")
        for statement in _TABLES.split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)
        connection.commit()


@contextmanager
def reading_sorted(store: CrawlStore, path: Path) -> Iterator[Connection]:
    """Open a store, as ``main``, with a copy that `sort_urls` made, as ``sorted``."""
    with closing(store.reopened()) as reading, reading.engine.connect() as connection:
        _attach(connection, path)
        yield connection


def _attach(connection: Connection, path: Path) -> None:
    connection.execute(sa.text("ATTACH :path AS sorted"), {"path": str(path)})
