"""Opens, checks and reads crawl stores, which may be damaged or of untrusted origin.

When a store is opened, the schema and the highest ids are checked. In a small store, every
database page and every value is also checked. In a large store, damage is found when a damaged row
is read. The function `find_damage` then checks all values.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.foundation.databases import Database, open_database
from focuscrawl.foundation.files import replace_atomically
from focuscrawl.foundation.model_folder import DECODING_ERRORS, error_message
from focuscrawl.store import schema

if TYPE_CHECKING:
    from focuscrawl.store.schema import Column

#: size of the largest store that opening checks completely, in some tenths of a second
FULL_CHECK_BYTES = 16 << 20

#: stores that this process opened without checking all values
partly_checked: set[str] = set()

_ROW = 8  # smallest size of a row in bytes, with its indexes
_WORD = re.compile(r"\w+")
_INDEX = re.compile(r"CREATE INDEX \S+ ON \W*\w+\W*\(([\w\s,\"]+)\)", re.IGNORECASE)

_INT32 = "BETWEEN 0 AND 2147483647"
_ANY_URL = "BETWEEN 0 AND (SELECT max(id) FROM url)"
_SHARE = "BETWEEN -1e-6 AND 1.000001"  # sums of probabilities are rounded
_UTC = "GLOB '????-??-??T*' AND strftime('%Y-%m-%dT%H', {0}) = substr({0}, 1, 13)"
#: SQL conditions for values, besides their type. ``sum(1)`` counts rows, because ``count(*)`` is a
#: single step of SQLite, which no limit interrupts
_CONDITIONS = {
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
    "page.digest": "IS NOT NULL AND (length({0}) <= 16 OR length({0}) IN (32, 48, 272))",
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
#: SQLite type of the values by the declared type of their column
_KINDS = {
    "INTEGER": "integer",
    "SMALLINT": "integer",
    "FLOAT": "real",
    "BLOB": "blob",
    "TEXT": "text",
}


class CrawlStore:
    """The SQLite database of one crawl, which any thread may use.

    Parameters
    ----------
    path : Path
        SQLite file with the schema.
    read_only : bool
        Open the file for reading only, which also works in read-only folders.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.location = str(path)  #: name of the store in messages
        self._path = path
        self._read_only = read_only
        self._idle: list[Database] = []

    @classmethod
    def create(cls, path: Path, identity: Mapping[str, str]) -> CrawlStore:
        """Create the database of a new crawl, completely or not at all.

        Parameters
        ----------
        identity : mapping of str to str
            Arguments of the crawl, saved in the table ``meta``.
        """
        rows = {"schema_version": str(schema.SCHEMA_VERSION), **identity}
        with (
            replace_atomically(path) as draft,
            closing(cls(draft)) as store,  # closing moves the log into the file
            store.connection() as connection,
        ):
            connection.executescript(f"BEGIN; {schema.SCHEMA}")
            connection.executemany(schema.INSERT["meta"], rows.items())
        return cls(path)

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False, whole: bool = False) -> CrawlStore:
        """Open an existing store.

        Parameters
        ----------
        read_only : bool
            Open the file for reading only, which also works in read-only folders.
        whole : bool
            Check every value of a large store, too, which takes as long as reading the store.

        Raises
        ------
        UserError
            The file does not exist, is damaged, is not a crawl store, or has another schema
            version.
        """
        if not path.is_file():
            raise UserError(f"{path.parent} contains no crawl: {path.name} is missing")
        store = cls(path, read_only=read_only)
        try:
            version = str(store.identity().get("schema_version", "unknown"))
            if version != str(schema.SCHEMA_VERSION):
                raise UserError(
                    f"{path} has schema version {version[:9]}, this focuscrawl reads "
                    f"{schema.SCHEMA_VERSION}: crawl again into a new crawl_dir, or use the "
                    "focuscrawl that wrote the store"
                )
            with store.connection() as connection:
                _check_content(connection, str(path), whole=whole)
        except (
            sqlite3.DatabaseError,
            UnicodeError,
        ) as error:  # the message itself may not be UTF-8
            store.close()
            raise UserError(
                f"{path} is not a crawl store ({error}): name the folder of a crawl"
            ) from error
        except BaseException:
            store.close()
            raise
        return store

    def reopen(self) -> CrawlStore:
        """Open the same store again, read-only and without checks."""
        return CrawlStore(self._path, read_only=True)

    def identity(self) -> dict[str, str]:
        """Return the arguments that the crawl was started with, and the schema version."""
        return {row["key"]: row["value"] for row in self.rows("SELECT key, value FROM meta")}

    @contextmanager
    def connection(self) -> Iterator[Database]:
        """Provide a database connection for one transaction in a ``with`` block.

        The transaction is committed at the end of the block, or rolled back after an error.

        Raises
        ------
        UserError
            SQLite reports that the file is damaged.
        """
        idle = self._idle
        with _sqlite_damage_as_user_error(self.location):
            try:
                connection = idle.pop()
            except IndexError:
                connection = (
                    _open_for_reading(self._path)
                    if self._read_only
                    else _open_for_writing(self._path)
                )
                connection.row_factory = sqlite3.Row
            try:
                with connection:
                    yield connection
            finally:
                if idle is self._idle:
                    idle.append(connection)
                else:  # the store was closed meanwhile
                    connection.close()

    def rows(
        self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()
    ) -> Iterator[sqlite3.Row]:
        """Yield the rows of an SQL statement, without loading all rows at once."""
        with self.connection() as connection:
            cursor = connection.execute(statement, values)
            with closing(cursor):  # also when the caller reads only the first rows
                yield from cursor

    def row(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> sqlite3.Row:
        """Return the only result row of an SQL statement."""
        (row,) = self.rows(statement, values)
        return row

    def close(self) -> None:
        """Close all database connections; a later read opens a new connection."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def find_damage() -> UserError | None:
    """Check every value of all open stores that were opened without a full check.

    Returns
    -------
    UserError or None
        Error that describes the damage of the first damaged store; None if all stores are sound.
    """
    for where in partly_checked:
        try:
            CrawlStore.open(Path(where), read_only=True, whole=True).close()
        except UserError as error:
            return error
    return None


@contextmanager
def reporting_damage(where: str) -> Iterator[None]:
    """Convert errors while decoding a strategy's stored bytes to a one-line error.

    Only the strategy that wrote the stored bytes can check the bytes.
    """
    try:
        yield
    except DECODING_ERRORS as error:
        raise damage_error(where, error_message(error)) from error


def damage_error(where: str, what: object) -> UserError:
    """Return the error for a damaged store."""
    return UserError(
        f"{where} is damaged ({what}): restore a backup of the crawl, or crawl into a new "
        "crawl_dir"
    )


@contextmanager
def _sqlite_damage_as_user_error(where: str) -> Iterator[None]:
    """Report errors of SQLite that mean a damaged store, in one line."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF == sqlite3.SQLITE_CORRUPT:
            raise damage_error(where, error) from error
        if code == sqlite3.SQLITE_INTERRUPT:
            raise damage_error(where, "a query of it exceeds the step limit") from error
        if code is None and "decode to UTF-8" in str(error):
            raise damage_error(where, "a text that is not UTF-8") from error
        raise


def _open_for_writing(path: Path) -> Database:
    connection = open_database(path, isolation_level="DEFERRED")
    # With write-ahead logging, readers do not wait for the crawl, and a killed process loses no
    # committed record. NORMAL syncs only before SQLite copies the log into the database. After a
    # power cut the database is intact, but the last half minute or so of fetches may be lost; the
    # crawl repeats these fetches. See docs/explanation/endurance.md.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -65536")
    return connection


def _open_for_reading(path: Path) -> Database:
    # SQLite cannot create its shared-memory file in a read-only folder. Without a log, no process
    # writes the database, so SQLite can read the file without shared memory
    immutable = not os.access(path.parent, os.W_OK) and not _has_log(path)
    return open_database(path, mode="ro", immutable=immutable, isolation_level="DEFERRED")


def _has_log(path: Path) -> bool:
    """Return whether the write-ahead log has fetches that the database file lacks."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _check_content(connection: Database, where: str, *, whole: bool) -> None:
    """Raise `UserError` if a store is damaged or has another schema.

    Parameters
    ----------
    whole : bool
        Check every value of a large store, too.
    """
    connection.execute("BEGIN")  # one snapshot of a running crawl
    tables: Iterable[str] = schema.layout().tables
    _check_schema(connection, where)
    if _check_ids(connection, where) <= FULL_CHECK_BYTES:
        ((verdict,),) = connection.execute("PRAGMA quick_check(1)")
        if verdict != "ok":
            raise damage_error(where, " ".join(str(verdict).split()))
    elif not whole:
        partly_checked.add(where)
        tables = ["meta"]
    for table in tables:
        sound = " AND ".join(map(_condition, schema.layout().tables[table]))
        bad = f"SELECT rowid FROM {table} WHERE NOT coalesce({sound}, 0) LIMIT 1"
        for (row,) in connection.execute(bad):
            raise damage_error(where, f"row {row} of the table {table} has an invalid value")


def _check_schema(connection: Database, where: str) -> None:
    """Check that all tables and views exist, and that none runs unexpected SQL."""
    rows = connection.execute("SELECT name, type, sql FROM sqlite_master")
    found = {str(name): (str(kind), str(sql)) for name, kind, sql in rows}
    tables, views = schema.layout()
    for table, columns in tables.items():
        kind, sql = found.get(table, ("missing", ""))
        if kind != "table":
            raise damage_error(where, f"the table {table} is {kind}")
        if not _words(sql) <= _schema_words():
            raise damage_error(where, f"the definition of the table {table} was changed")
        there = {str(row["name"]) for row in connection.execute(f"PRAGMA table_info({table})")}
        missing = {column.name for column in columns} - there
        if missing:
            raise damage_error(where, f"the table {table} has no column {min(missing)}")
    for name, view in views.items():
        _, sql = found.get(name, ("missing", ""))
        if sql.split() != view.split():
            raise damage_error(where, f"the view {name} is missing or was changed")
    names = {column.name.upper() for columns in tables.values() for column in columns}
    for name, (kind, sql) in found.items():
        if kind == "index" and not name.startswith("sqlite_"):
            of = _INDEX.fullmatch(sql)
            if of is None or not _words(of[1]) <= {*names, "ASC", "DESC"}:
                raise damage_error(where, f"the index {name} contains expressions")


def _words(sql: str) -> set[str]:
    """Return the words of a statement, which show checks, defaults and functions."""
    return set(_WORD.findall(sql.upper()))


@cache
def _schema_words() -> set[str]:
    tables = re.findall(r"CREATE TABLE [^;]*;", schema.SCHEMA)
    return _words(" ".join(tables)) | {"FOREIGN"}  # of separate key clauses


def _check_ids(connection: Database, where: str) -> int:
    """Check that the ids fit the size of the store; callers allocate arrays for all ids.

    Returns
    -------
    int
        Size of the database in bytes.
    """
    ((pages,),) = connection.execute("PRAGMA page_count")
    ((page,),) = connection.execute("PRAGMA page_size")
    for column in (each for table in schema.layout().tables.values() for each in table):
        if not column.is_indexed or column.type != "INTEGER":
            continue
        for end in ("min", "max"):
            of = f'SELECT {end}("{column.name}") FROM {column.table}'
            ((number,),) = connection.execute(of)
            sound = isinstance(number, int) and 0 <= number <= pages * page // _ROW
            if number is not None and not sound:  # a damaged page may contain a text
                raise damage_error(where, f"{column.table}.{column.name} is {number}")
    return int(pages * page)


def _condition(column: Column) -> str:
    """Return an SQL condition that is true for every valid value of a column."""
    name = f'"{column.name}"'
    condition = f"typeof({name}) = '{_KINDS[column.type]}'"
    more = _CONDITIONS.get(f"{column.table}.{column.name}")
    if more is not None:
        condition += f" AND {name} {more.format(name)}"
    return f"({name} IS NULL OR {condition})" if column.nullable else f"({condition})"
