"""Opening, checking and reading a crawl store, which may be damaged or a stranger's.

What costs the same for every store is looked at whenever one is opened: the schema, the highest
numbers, and first what `focuscrawl.foundation.databases` looks at. Of a small one every page and
every value is looked at as well. Of a large one damage shows when it is read, or what is read
makes something fail: then its values are looked at, see `find_damage`.
"""

from __future__ import annotations

import os
import re
import sqlite3
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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from focuscrawl.store.schema import Column

#: bytes of a store of which every page and value is looked at: some tenths of a second
FULL_CHECK_BYTES = 16 << 20

#: stores that this process has opened and not looked through
partly_checked: set[str] = set()

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
#: what SQLite calls the values of a column, by the type it is declared of
_KINDS = {
    "INTEGER": "integer",
    "SMALLINT": "integer",
    "FLOAT": "real",
    "BLOB": "blob",
    "TEXT": "text",
}


class CrawlStore:
    """The database of one crawl, for any thread.

    Parameters
    ----------
    path : an SQLite file that has the schema
    read_only : only read, also where nothing can be written
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.location = str(path)  #: how to name the store in messages
        self._path = path
        self._read_only = read_only
        self._idle: list[Database] = []

    @classmethod
    def create(cls, path: Path, identity: Mapping[str, str]) -> CrawlStore:
        """Create the store file `path` for a crawl that `identity` describes.

        The file appears whole or not at all: it is made under another name, so that a process
        killed meanwhile leaves no half of a store behind.
        """
        rows = {"schema_version": str(schema.SCHEMA_VERSION), **identity}
        with (
            replace_atomically(path) as draft,
            closing(cls(draft)) as store,  # which empties the write-ahead log into the file
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
        read_only : only read, also where nothing can be written
        whole : look at every value of a large one, too, which takes as long as reading it

        Raises
        ------
        UserError
            There is none, it is no crawl store, a damaged one, or one of another schema.
        """
        if not path.is_file():
            raise UserError(f"{path.parent} holds no crawl: there is no {path.name} in it")
        store = cls(path, read_only=read_only)
        try:
            version = str(store.identity().get("schema_version", "unknown"))
            if version != str(schema.SCHEMA_VERSION):
                raise UserError(
                    f"{path} has schema version {version[:9]}, this focuscrawl reads "
                    f"{schema.SCHEMA_VERSION}: crawl again, into a new crawl_dir, or take the "
                    "focuscrawl that wrote it"
                )
            with store.connection() as connection:
                _check_content(connection, str(path), whole=whole)
        except (sqlite3.DatabaseError, UnicodeError) as error:  # of SQLite's own message, even
            store.close()
            raise UserError(f"{path} is no crawl store ({error})") from error
        except BaseException:
            store.close()
            raise
        return store

    def reopen(self) -> CrawlStore:
        """Return the same store for reading, whether this one was closed or not.

        What is in it is not checked once more.
        """
        return CrawlStore(self._path, read_only=True)

    def identity(self) -> dict[str, str]:
        """Return what the crawl was started with, and the schema version."""
        return {row["key"]: row["value"] for row in self.rows("SELECT key, value FROM meta")}

    @contextmanager
    def connection(self) -> Iterator[Database]:
        """Lend a connection for one transaction.

        It is committed at the end, or rolled back when an error leaves the block.

        Raises
        ------
        UserError
            SQLite finds the file damaged.
        """
        idle = self._idle
        with _damage_in_a_line(self.location):
            try:
                connection = idle.pop()
            except IndexError:
                connection = _reading(self._path) if self._read_only else _writing(self._path)
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
        """Stream the rows of a statement without holding them all."""
        with self.connection() as connection:
            cursor = connection.execute(statement, values)
            with closing(cursor):  # also where somebody wants the first rows only
                yield from cursor

    def row(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> sqlite3.Row:
        """Return the one row of a statement."""
        (row,) = self.rows(statement, values)
        return row

    def close(self) -> None:
        """Close the connections. A store that is read again opens new ones."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def find_damage() -> UserError | None:
    """Look at every value of the stores that were opened without that.

    Returns
    -------
    What is wrong with the first one that is damaged; None: they are all sound
    """
    for where in partly_checked:
        try:
            CrawlStore.open(Path(where), read_only=True, whole=True).close()
        except UserError as error:
            return error
    return None


@contextmanager
def reporting_damage(where: str) -> Iterator[None]:
    """Make one line of what goes wrong while bytes of a store become what they were of.

    What a strategy or a lesson has kept is its own: nobody else can tell whether it is sound.
    """
    try:
        yield
    except DECODING_ERRORS as error:
        raise damage_error(where, error_message(error)) from error


def damage_error(where: str, what: object) -> UserError:
    """Return what a user is told of a damaged store."""
    return UserError(
        f"{where} is damaged ({what}): take a whole copy of the crawl, or crawl into a new "
        "crawl_dir"
    )


@contextmanager
def _damage_in_a_line(where: str) -> Iterator[None]:
    """Make one line of an error of SQLite's that means that a store is damaged."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF == sqlite3.SQLITE_CORRUPT:
            raise damage_error(where, error) from error
        if code == sqlite3.SQLITE_INTERRUPT:
            raise damage_error(where, "reading it comes to no end") from error
        if code is None and "decode to UTF-8" in str(error):
            raise damage_error(where, "a text that is not UTF-8") from error
        raise


def _writing(path: Path) -> Database:
    connection = open_database(path, isolation_level="DEFERRED")
    # Write-ahead logging: readers do not wait for the crawl, a killed process loses nothing
    # committed. NORMAL syncs before the log is copied into the database, and not at each
    # commit: a power cut costs what the system had not yet written of the log, the last half
    # minute or so of fetches, which are made again; the database stays whole. See
    # docs/explanation/endurance.md.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -65536")
    return connection


def _reading(path: Path) -> Database:
    # SQLite needs its shared-memory file to read beside a writer, and cannot make one in a folder
    # that is not ours. Where there is no log either, the file may be taken as it is
    as_it_is = not os.access(path.parent, os.W_OK) and not _has_log(path)
    return open_database(path, mode="ro", immutable=as_it_is, isolation_level="DEFERRED")


def _has_log(path: Path) -> bool:
    """Tell whether there are fetches that are not yet in the database itself."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _check_content(connection: Database, where: str, *, whole: bool) -> None:
    """Raise `UserError` if a store is damaged or its schema is not ours.

    Parameters
    ----------
    whole : look at every value of a large one, too
    """
    connection.execute("BEGIN")  # one state of a crawl that is running
    tables: Iterable[str] = schema.layout().tables
    _check_schema(connection, where)
    if _check_numbers(connection, where) <= FULL_CHECK_BYTES:
        ((verdict,),) = connection.execute("PRAGMA quick_check(1)")
        if verdict != "ok":
            raise damage_error(where, " ".join(str(verdict).split()))
    elif not whole:
        partly_checked.add(where)
        tables = ["meta"]
    for table in tables:
        sound = " AND ".join(map(_sound, schema.layout().tables[table]))
        bad = f"SELECT rowid FROM {table} WHERE NOT coalesce({sound}, 0) LIMIT 1"
        for (row,) in connection.execute(bad):
            raise damage_error(where, f"row {row} of the table {table} is none of a crawl's")


def _check_schema(connection: Database, where: str) -> None:
    """Check that all tables and views are there, and that none does what ours do not."""
    rows = connection.execute("SELECT name, type, sql FROM sqlite_master")
    found = {str(name): (str(kind), str(sql)) for name, kind, sql in rows}
    tables, views = schema.layout()
    for table, columns in tables.items():
        kind, sql = found.get(table, ("missing", ""))
        if kind != "table":
            raise damage_error(where, f"the table {table} is {kind}")
        if not _words(sql) <= _words_of_ours():
            raise damage_error(where, f"the table {table} is none of a crawl's")
        there = {str(row["name"]) for row in connection.execute(f"PRAGMA table_info({table})")}
        missing = {column.name for column in columns} - there
        if missing:
            raise damage_error(where, f"the table {table} has no column {min(missing)}")
    for name, view in views.items():
        _, sql = found.get(name, ("missing", ""))
        if sql.split() != view.split():
            raise damage_error(where, f"the view {name} is missing, or none of a crawl's")
    names = {column.name.upper() for columns in tables.values() for column in columns}
    for name, (kind, sql) in found.items():
        if kind == "index" and not name.startswith("sqlite_"):
            of = _INDEX.fullmatch(sql)
            if of is None or not _words(of[1]) <= {*names, "ASC", "DESC"}:
                raise damage_error(where, f"its index {name} is of more than columns")


def _words(sql: str) -> set[str]:
    """Return the words of a statement: no check, no default, nothing computed is among ours."""
    return set(_WORD.findall(sql.upper()))


@cache
def _words_of_ours() -> set[str]:
    tables = re.findall(r"CREATE TABLE [^;]*;", schema.SCHEMA)
    return _words(" ".join(tables)) | {"FOREIGN"}  # of keys that are not written at their columns


def _check_numbers(connection: Database, where: str) -> int:
    """Look for numbers that no array could be made for; return the length of the store, bytes."""
    ((pages,),) = connection.execute("PRAGMA page_count")
    ((page,),) = connection.execute("PRAGMA page_size")
    for column in (each for table in schema.layout().tables.values() for each in table):
        if not column.is_indexed or column.type != "INTEGER":
            continue
        for end in ("min", "max"):
            of = f'SELECT {end}("{column.name}") FROM {column.table}'
            ((number,),) = connection.execute(of)
            sound = isinstance(number, int) and 0 <= number <= pages * page // _ROW
            if number is not None and not sound:  # of a damaged page it may be a text
                raise damage_error(where, f"{column.table}.{column.name} is {number}")
    return int(pages * page)


def _sound(column: Column) -> str:
    """Return what holds, in SQL, of every value of a column."""
    name = f'"{column.name}"'
    holds = f"typeof({name}) = '{_KINDS[column.type]}'"
    more = _HOLDS.get(f"{column.table}.{column.name}")
    if more is not None:
        holds += f" AND {name} {more.format(name)}"
    return f"({name} IS NULL OR {holds})" if column.nullable else f"({holds})"
