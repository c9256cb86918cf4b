"""Opening, checking and reading a crawl store, which may be damaged or a stranger's."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import Float, Integer, LargeBinary, event
from sqlalchemy.schema import CreateTable

from focuscrawl.errors import UserError
from focuscrawl.foundation.databases import Database, open_database
from focuscrawl.foundation.files import draft_of
from focuscrawl.foundation.model_folder import UNSOUND, reason
from focuscrawl.store import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sqlalchemy import Column, Connection, Engine, Row, Table
    from sqlalchemy.engine import ExceptionContext


# Whether a store's file is what it should be: it may be damaged, or a stranger's.
#
# What costs the same for every store is looked at whenever one is opened: the schema, the highest
# numbers, and first what `focuscrawl.foundation.databases` looks at. Of a small one every page and
# every value is looked at as well; of a large one what is damaged shows when it is read, see
# `say_damage`, or what is read makes something fail: then its values are looked at, see
# `focuscrawl.store.crawl_store`.

#: bytes of a store of which every page and value is looked at: some tenths of a second
SMALL = 16 << 20

#: stores that this process has opened and not looked through
half_seen: set[str] = set()

_ROW = 8  # bytes that a row takes at least, in its table and its indexes
_WORD = re.compile(r"\w+")
_INDEX = re.compile(r"CREATE INDEX \S+ ON \W*\w+\W*\(([\w\s,\"]+)\)", re.IGNORECASE)

_INT32 = "BETWEEN 0 AND 2147483647"
_ANY_URL = "BETWEEN 0 AND (SELECT max(id) FROM url)"
_SHARE = "BETWEEN -1e-6 AND 1.000001"  # sums of probabilities are rounded
_UTC = "GLOB '????-??-??T*' AND strftime('%Y-%m-%dT%H', {0}) = substr({0}, 1, 13)"
#: what holds of values, where their type is not all there is to say. Rows are summed: to count
#: them is one step of SQLite's, which nothing gives up however long it is
_HOLDS = {
    "host.id": "BETWEEN 0 AND (SELECT sum(1) - 1 FROM host)",
    "url.id": "BETWEEN 0 AND (SELECT sum(1) - 1 FROM url)",
    "url.url": "GLOB 'http*://*' AND NOT {0} GLOB '*[' || char(1) || '- ]*'",
    "url.host": "BETWEEN 0 AND (SELECT max(id) FROM host)",
    "url.depth": _INT32,
    "url.referrer": _ANY_URL,
    "url.state": f"BETWEEN 0 AND {len(schema.STATES) - 1}",
    "page.url": _ANY_URL,
    "page.status": _INT32,
    "page.relevance": _SHARE,
    "page.fetched_at": _UTC,
    "page.size": ">= 0",
    "page.digest": "IS NOT NULL AND (length({0}) <= 16 OR length({0}) % 32 = 16)",
    "page.duplicate_of": _ANY_URL,
    "page.links": _INT32,
    "page.dropped": _INT32,
    "link.source": _ANY_URL,
    "link.target": _ANY_URL,
    "link.dom_position": _INT32,
    "revisit.url": _ANY_URL,
    "revisit.status": _INT32,
    "revisit.relevance": _SHARE,
    "revisit.fetched_at": _UTC,
    "revisit.size": _INT32,
    "revisit.links": _INT32,
    "events.at": _UTC,
}


def check_content(connection: Connection, where: str, *, whole: bool = False) -> None:
    """Look at what a store holds.

    Parameters
    ----------
    connection : to an SQLite store
    where : the store, for messages
    whole : look at every value of a large one, too

    Raises
    ------
    UserError
        It is damaged, or its schema is not ours.
    """
    connection.exec_driver_sql("BEGIN")  # one state of a crawl that is running
    try:
        _check_schema(connection, where)
        length, tables = _check_numbers(connection, where), schema.metadata.sorted_tables
        if length <= SMALL:
            verdict = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
            if verdict != "ok":
                raise damaged(where, " ".join(str(verdict).split()))
        elif not whole:
            half_seen.add(where)
            tables = [schema.meta]
        _check_values(connection, where, tables)
    finally:
        connection.rollback()


def damaged(where: str, what: object) -> UserError:
    """Return what a user is told of a damaged store."""
    return UserError(
        f"{where} is damaged ({what}): take a whole copy of the crawl, or crawl into a new "
        "crawl_dir"
    )


@contextmanager
def taking_in(where: str) -> Iterator[None]:
    """Make one line of what goes wrong while bytes of a store become what they were of.

    What a strategy or a lesson has kept is its own: nobody else can tell whether it is sound.
    """
    try:
        yield
    except UNSOUND as error:
        raise damaged(where, reason(error)) from error


def say_damage(context: ExceptionContext, where: str) -> None:
    """Make one line of an error of SQLite's that means that a store is damaged."""
    error = context.original_exception
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF == sqlite3.SQLITE_CORRUPT:
        raise damaged(where, error) from error
    if code == sqlite3.SQLITE_INTERRUPT:
        raise damaged(where, "reading it comes to no end") from error
    if code is None and "decode to UTF-8" in str(error):
        raise damaged(where, "a text that is not UTF-8") from error


def _check_schema(connection: Connection, where: str) -> None:
    """Check that all tables and views are there, and that none does what ours do not."""
    rows = connection.exec_driver_sql("SELECT name, type, sql FROM sqlite_master")
    found = {str(name): (str(kind), str(sql)) for name, kind, sql in rows}
    for table in schema.metadata.sorted_tables:
        kind, sql = found.get(table.name, ("missing", ""))
        if kind != "table":
            raise damaged(where, f"the table {table.name} is {kind}")
        if not _words(sql) <= {*_words_of_ours(table), "INTEGER"}:
            raise damaged(where, f"the table {table.name} is none of a crawl's")
        missing = {*table.c.keys()} - set(_columns(connection, table))
        if missing:
            raise damaged(where, f"the table {table.name} has no column {min(missing)}")
    for name, view in schema.VIEWS.items():
        kind, sql = found.get(name, ("missing", ""))
        if sql.split() != ["CREATE", "VIEW", name, "AS", *view.split()]:
            raise damaged(where, f"the view {name} is missing, or none of a crawl's")
    for name, (kind, sql) in found.items():
        if kind == "index" and not name.startswith("sqlite_") and not _of_columns(sql):
            raise damaged(where, f"its index {name} is of more than columns")


def _words(sql: str) -> set[str]:
    """Return the words of a statement: no check, no default, nothing computed is among ours."""
    return set(_WORD.findall(sql.upper()))


@cache
def _words_of_ours(table: Table) -> set[str]:
    return _words(str(CreateTable(table)))


def _of_columns(sql: str) -> bool:
    """Tell whether an index is of columns of ours and nothing computed from them."""
    found = _INDEX.fullmatch(sql)
    tables = schema.metadata.sorted_tables
    names = {column.name.upper() for table in tables for column in table.c}
    return found is not None and _words(found[1]) <= {*names, "ASC", "DESC"}


def _columns(connection: Connection, table: Table) -> list[str]:
    """Return the names of the columns that a table has in this store."""
    return [str(row[1]) for row in connection.exec_driver_sql(f"PRAGMA table_info({table.name})")]


def _check_numbers(connection: Connection, where: str) -> int:
    """Look for numbers that no array could be made for; return the length of the store, bytes."""
    (pages,) = connection.exec_driver_sql("PRAGMA page_count").one()
    (page,) = connection.exec_driver_sql("PRAGMA page_size").one()
    for table in schema.metadata.sorted_tables:
        for column in table.c:
            found_fast = column.primary_key or column.index or column.unique
            if not (found_fast and isinstance(column.type, Integer)):
                continue
            for end in ("min", "max"):
                of = f'SELECT {end}("{column.name}") FROM {table.name}'
                number = connection.exec_driver_sql(of).scalar_one()
                sound = isinstance(number, int) and 0 <= number <= pages * page // _ROW
                if number is not None and not sound:  # of a damaged page it may be a text
                    raise damaged(where, f"{column} is {number}")
    return int(pages * page)


def _check_values(connection: Connection, where: str, tables: list[Table]) -> None:
    """Look at every value of some tables."""
    for table in tables:
        sound = " AND ".join(map(_sound, table.c))
        bad = f"SELECT rowid FROM {table.name} WHERE NOT coalesce({sound}, 0) LIMIT 1"
        for (row,) in connection.exec_driver_sql(bad):
            raise damaged(where, f"row {row} of the table {table.name} is none of a crawl's")


def _sound(column: Column[Any]) -> str:
    """Return what holds, in SQL, of every value of a column."""
    name = f'"{column.name}"'
    kinds = {Integer: "integer", Float: "real", LargeBinary: "blob"}
    kind = next((k for of, k in kinds.items() if isinstance(column.type, of)), "text")
    holds = f"typeof({name}) = '{kind}'"
    if str(column) in _HOLDS:
        holds += f" AND {name} {_HOLDS[str(column)].format(name)}"
    return f"({name} IS NULL OR {holds})" if column.nullable else f"({holds})"


class CrawlStore:
    """The database of one crawl.

    Parameters
    ----------
    engine : a SQLAlchemy engine on a database that has the schema
    where : how to name the store in messages
    """

    def __init__(self, engine: Engine, where: str) -> None:
        self.engine = engine
        self.where = where

    @classmethod
    def create(cls, path: Path, identity: Mapping[str, str]) -> CrawlStore:
        """Create the store file `path` for a crawl that `identity` describes.

        The file appears whole or not at all: it is made under another name, so that a process
        killed meanwhile leaves no half of a store behind.
        """
        with draft_of(path) as draft:
            engine = _sqlite(draft)
            with engine.begin() as connection:
                schema.metadata.create_all(connection)
                rows = {"schema_version": str(schema.SCHEMA_VERSION), **identity}
                meta = [{"key": key, "value": value} for key, value in rows.items()]
                connection.execute(sa.insert(schema.meta), meta)
            engine.dispose()  # the last connection to go empties the write-ahead log into the file
        return cls(_sqlite(path), str(path))

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False, whole: bool = False) -> CrawlStore:
        """Open an existing store.

        Parameters
        ----------
        read_only : only read, also where nothing can be written
        whole : look at every value of a large one, too, which takes as long as reading it

        Raises
        ------
        UserError
            There is none, it is no crawl store, a damaged one, or one of another schema.
        """
        if not path.is_file():
            raise UserError(f"{path.parent} holds no crawl: there is no {path.name} in it")
        store = cls(_reading(path) if read_only else _sqlite(path), str(path))
        try:
            version = str(store.identity().get("schema_version", "unknown"))
            if version != str(schema.SCHEMA_VERSION):
                raise UserError(
                    f"{path} has schema version {version[:9]}, this focuscrawl reads "
                    f"{schema.SCHEMA_VERSION}: crawl again, into a new crawl_dir, or take the "
                    "focuscrawl that wrote it"
                )
            with store.engine.connect() as connection:
                check_content(connection, str(path), whole=whole)
        except (sa.exc.DatabaseError, UnicodeError) as error:  # of SQLite's own message, even
            store.close()
            what = getattr(error, "orig", error)
            raise UserError(f"{path} is no crawl store ({what})") from error
        except BaseException:
            store.close()
            raise
        return store

    def reopened(self) -> CrawlStore:
        """Return the same store for reading, whether this one was closed or not.

        What is in it is not checked once more.
        """
        return CrawlStore(_reading(Path(self.where)), self.where)

    def identity(self) -> dict[str, str]:
        """Return what the crawl was started with, and the schema version."""
        with self.engine.connect() as connection:
            rows = connection.execute(sa.select(schema.meta.c.key, schema.meta.c.value))
            return {row.key: row.value for row in rows}

    def rows(self, statement: sa.Select[Any] | sa.TextClause) -> Iterator[Row[Any]]:
        """Stream the rows of `statement` without holding them all."""
        with self.engine.connect() as connection:
            streaming = connection.execution_options(yield_per=10_000)
            # closed also where somebody wants the first rows only
            with streaming.execute(statement) as result:
                yield from result

    def row(self, statement: sa.Select[*tuple[Any, ...]]) -> Row[*tuple[Any, ...]]:
        """Return the one row of `statement`."""
        (row,) = self.rows(statement)
        return row

    def close(self) -> None:
        """Give back the connections."""
        self.engine.dispose()


def _sqlite(path: Path) -> Engine:
    def opened() -> Database:
        connection = open_database(path, isolation_level="DEFERRED")
        # Write-ahead logging: readers do not wait for the crawl, a killed process loses nothing
        # committed. NORMAL syncs before the log is copied into the database, and not at each
        # commit: a power cut costs what the system had not yet written of the log, the last half
        # minute or so of fetches, which are made again; the database stays whole. See
        # docs/endurance.md.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -65536")
        return connection

    return _engine(path, opened)


def _reading(path: Path) -> Engine:
    # SQLite needs its shared-memory file to read beside a writer, and cannot make one in a folder
    # that is not ours. Where there is no log either, the file may be taken as it is
    as_it_is = not os.access(path.parent, os.W_OK) and not _has_log(path)
    return _engine(
        path,
        lambda: open_database(path, mode="ro", immutable=as_it_is, isolation_level="DEFERRED"),
    )


def _engine(path: Path, opened: Callable[[], Database]) -> Engine:
    """Return an engine that says in a line what is wrong with a stranger's file."""
    # SQLAlchemy takes the name for how connections are pooled alone
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(path)), creator=opened)
    event.listen(engine, "handle_error", lambda context: say_damage(context, str(path)))
    return engine


def _has_log(path: Path) -> bool:
    """Tell whether there are fetches that are not yet in the database itself."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def find_damage() -> UserError | None:
    """Look at every value of the stores that were opened without that.

    Returns
    -------
    What is wrong with the first one that is damaged; None: they are all sound
    """
    for where in half_seen:
        try:
            CrawlStore.open(Path(where), read_only=True, whole=True).close()
        except UserError as error:
            return error
    return None
