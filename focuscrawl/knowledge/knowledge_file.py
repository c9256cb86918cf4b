"""Opens and checks the SQLite file that stores what crawls have learned about a topic."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.foundation import files
from focuscrawl.foundation.databases import (
    Database,
    find_foreign_objects,
    find_missing_objects,
    open_database,
)
from focuscrawl.foundation.files import update_lock
from focuscrawl.foundation.urls import schemeless
from focuscrawl.webs.warc_index import url_keys as unsigned_keys_of

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Ints


#: incremented with every change of the tables; see CHANGELOG
SCHEMA_VERSION = 1
#: value of ``kind`` in `meta`
KIND = "focuscrawl knowledge"

# `key` is the 64-bit hash of a URL without its scheme. As the rowid, `key` needs no index, and all
# keys are an array that is searched in memory.
TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE crawl (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    learned_at TEXT NOT NULL,
    fetches INTEGER NOT NULL,
    relevant INTEGER NOT NULL,
    new INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    unchanged INTEGER NOT NULL,
    failed INTEGER NOT NULL
);
CREATE TABLE page (
    key INTEGER PRIMARY KEY,
    url TEXT NOT NULL,
    relevance REAL NOT NULL,
    content BLOB,
    etag TEXT,
    last_modified TEXT,
    visited REAL NOT NULL,
    changed REAL,
    accesses INTEGER NOT NULL DEFAULT 0,
    changes INTEGER NOT NULL DEFAULT 0,
    span REAL NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    hub REAL NOT NULL DEFAULT 0,
    authority REAL NOT NULL DEFAULT 0
);
CREATE TABLE waiting (key INTEGER PRIMARY KEY, url TEXT NOT NULL, score REAL NOT NULL);
CREATE TABLE seed (rank INTEGER PRIMARY KEY, url TEXT NOT NULL, hub REAL, authority REAL);
CREATE TABLE word (
    word TEXT PRIMARY KEY, relevant INTEGER NOT NULL, other INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE exemplar (key INTEGER PRIMARY KEY, relevance REAL NOT NULL, words BLOB NOT NULL);
CREATE TABLE model (kind TEXT PRIMARY KEY, digest TEXT NOT NULL, data BLOB NOT NULL) WITHOUT ROWID;
"""

_CREATE = "create the file again with `focuscrawl knowledge learn`"  # remedy in error messages
_MAGIC = b"SQLite format 3\0"
_DAMAGE_ERRORS = (sqlite3.DatabaseError, UnicodeError)  # decoding SQLite's message can fail, too
_HEAD = 100  # bytes of a SQLite header


def url_keys(urls: Sequence[str]) -> Ints:
    """Return an integer key of each normalised URL, int64 (n,); ``http`` counts as ``https``.

    The probability that any two of a million different URLs have the same key is 3 in 10^8.
    """
    return unsigned_keys_of([schemeless(url) for url in urls]).view(np.int64)


def key_of(url: str) -> int:
    """Return the integer key of one URL, as `url_keys` does."""
    return int(url_keys([url])[0])


class FetchRecord(NamedTuple):
    """One fetch of a crawl, with the data that a knowledge file stores.

    Attributes
    ----------
    status, relevance : as in the store of the crawl
    content : digest of the text; None for a duplicate or a URL without a page
    etag, last_modified : validators of the response
    day : time of the fetch in days, from any origin
    texts : title and headings of the page
    anchors : anchors of links into the page
    hub, authority : scores, divided by the largest score of the crawl
    """

    url: str
    status: int
    relevance: float
    content: bytes | None
    etag: str | None
    last_modified: str | None
    day: float
    texts: tuple[str, ...]
    anchors: tuple[str, ...]
    hub: float
    authority: float


@dataclass(frozen=True)
class CrawlRecord:
    """The data of a finished crawl that `add_crawl` adds to a knowledge file.

    Attributes
    ----------
    topic, critic, critic_name : topic paths, fingerprint and folder of the critic
    replay : whether the web was recorded; time is then counted in crawls
    fetches : fetches in any order
    queued : unfetched URLs with their scores in [0, 1]
    trained_apprentice : `Apprentice.export` of the apprentice of the crawl, or None
    """

    id: str
    name: str
    topic: str
    critic: str
    critic_name: str
    replay: bool
    learned_at: str
    fetches: Iterable[FetchRecord]
    queued: Iterable[tuple[str, float]] = ()
    trained_apprentice: bytes | None = None


class UpdateCounts(NamedTuple):
    """Number of fetches of a crawl that was added to a knowledge file, in total and by outcome."""

    fetches: int = 0
    relevant: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    failed: int = 0


def open_knowledge_file(path: Path) -> sqlite3.Connection:
    """Open a knowledge file for reading, without running any code in the file.

    Raises
    ------
    UserError
        The file does not exist, is not a knowledge file, is truncated or damaged, or has another
        schema version.
    """
    _check_complete(path)
    # opened as immutable, as the training thread also reads the file
    try:
        connection = open_database(
            path.resolve(), mode="ro", immutable=True, factory=_CheckedDatabase
        )
    except _DAMAGE_ERRORS as error:
        raise UserError(f"{path} is not a knowledge file ({error})") from None
    connection.text_factory = _decode
    try:
        checked = connection.cursor()
        meta = read_meta(checked)
        if meta.get("kind") != KIND:
            raise UserError(f"{path} is not a knowledge file but another database")
        _check_version(path, meta.get("schema_version", ""))
        _check_schema(checked, path)
    except _DAMAGE_ERRORS as error:
        connection.close()
        raise UserError(f"{path} is not a knowledge file ({error})") from None
    except UserError:
        connection.close()
        raise
    return connection


def _check_schema(connection: sqlite3.Connection | sqlite3.Cursor, path: Path) -> None:
    """Check that the tables are exactly `TABLES`, as SQLite executes computed columns."""
    for name in find_missing_objects(connection, TABLES):
        raise UserError(f"knowledge file {path} is damaged: table {name} is missing; {_CREATE}")
    for name in find_foreign_objects(connection, TABLES):
        raise UserError(f"knowledge file {path} is damaged: unexpected {name}; {_CREATE}")


def read_meta(connection: sqlite3.Connection | sqlite3.Cursor) -> dict[str, str]:
    """Return the table ``meta`` of a knowledge file as a dict."""
    return dict(connection.execute("SELECT key, value FROM meta"))


@contextmanager
def open_draft(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of a knowledge file, or a new file; on success, the copy replaces the file.

    Other processes that write the knowledge file wait until the file is replaced.

    Raises
    ------
    UserError
        The file is not a readable knowledge file, another process holds the lock for too long, or
        the file cannot be written.
    """
    busy = f"another process is writing {path}: try again when the process has finished"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with update_lock(path, busy=busy), files.replace_atomically(path) as draft:
            files.remove_stale_drafts(path)  # drafts of killed processes
            exists = path.exists()
            if exists:
                open_knowledge_file(path).close()
                shutil.copyfile(path, draft)
            with closing(open_database(draft)) as connection:
                # an incomplete draft is deleted, so no journal is needed
                connection.execute("PRAGMA journal_mode = OFF")
                connection.execute("PRAGMA synchronous = OFF")
                connection.execute("PRAGMA cache_size = -65536")
                if not exists:
                    connection.executescript(TABLES)
                connection.execute("BEGIN")
                yield connection
                connection.execute("COMMIT")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    except sqlite3.DatabaseError as error:
        raise UserError(
            f"cannot update {path} ({error}): the file is damaged, or the disk is full"
        ) from None


def _check_complete(path: Path) -> None:
    """Check the size of a SQLite file against its header."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        raise UserError(
            f"knowledge file {path} not found: create the file with `focuscrawl knowledge learn`"
        ) from None
    except OSError as error:
        raise UserError(f"cannot read knowledge file {path}: {error.strerror}") from None
    if not head.startswith(_MAGIC) or len(head) < _HEAD:
        raise UserError(
            f"{path} is not a knowledge file: the file is no SQLite database, or truncated"
        )
    page = int.from_bytes(head[16:18], "big")
    expected = (page if page > 1 else 1 << 16) * int.from_bytes(head[28:32], "big")
    if size < expected:
        raise UserError(
            f"knowledge file {path} is truncated: {size:,} of {expected:,} bytes; copy the file "
            "again"
        )


def _check_version(path: Path, version: str) -> None:
    if version == str(SCHEMA_VERSION):
        return
    newer = version.isdecimal() and int(version) > SCHEMA_VERSION
    remedy = "upgrade focuscrawl" if newer else _CREATE
    raise UserError(
        f"knowledge file {path} has schema version {version or 'unknown'}, but this focuscrawl "
        f"reads {SCHEMA_VERSION}: {remedy}"
    )


class _CheckedDatabase(Database):
    """A connection that raises `UserError` whenever it finds damage in the file."""

    def execute(self, *statement: Any) -> sqlite3.Cursor:
        """Execute an SQL statement."""
        cursor: sqlite3.Cursor = self.cursor(_CheckedCursor)
        return cursor.execute(*statement)


class _CheckedCursor(sqlite3.Cursor):
    def execute(self, *statement: Any) -> Self:
        with _report_damage():
            return super().execute(*statement)

    def __next__(self) -> Any:
        with _report_damage():
            return super().__next__()

    def fetchone(self) -> Any:
        with _report_damage():
            return super().fetchone()

    def fetchall(self) -> list[Any]:
        with _report_damage():
            return super().fetchall()


@contextmanager
def _report_damage() -> Iterator[None]:
    try:
        yield
    except _DAMAGE_ERRORS as error:
        raise UserError(f"the knowledge file is damaged ({error}): {_CREATE}") from None


def _decode(text: bytes) -> str:
    return text.decode(errors="replace")
