"""The SQLite file of what is known of a topic: tables, keys, checks."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.foundation import files
from focuscrawl.foundation.databases import Database, foreign_to, missing_in, open_database
from focuscrawl.foundation.files import changing
from focuscrawl.webs.warc_index import keys_of as unsigned_keys_of
from focuscrawl.webs.warc_index import schemeless

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from focuscrawl.foundation.arrays import Ints


#: raised by one with every change of the tables; see CHANGELOG
SCHEMA_VERSION = 1
#: value of ``kind`` in `meta`
KIND = "focuscrawl knowledge"

# `key` is the 64-bit hash of a URL without its scheme. As the row's own number it needs no index,
# and all keys together are an array that is searched in memory.
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

_MAGIC = b"SQLite format 3\0"
#: of a message of SQLite's own, even
_DAMAGE_ERRORS = (sqlite3.DatabaseError, UnicodeError)
_HEAD = 100  # bytes of a SQLite header


def keys_of(urls: Sequence[str]) -> Ints:
    """Return the keys of normalised URLs, int64 (n,); ``http`` and ``https`` are one.

    Of a million URLs two share a key with a chance of 3 in 10^8.
    """
    return unsigned_keys_of([schemeless(url) for url in urls]).view(np.int64)


def key_of(url: str) -> int:
    """Return the key of one URL."""
    return int(keys_of([url])[0])


class FetchRecord(NamedTuple):
    """One fetch of a crawl.

    Attributes
    ----------
    url : normalised
    status, relevance : as in the crawl's store
    content : digest of the page's text; None if it was no page, or a duplicate
    etag, last_modified : validators of the answer
    day : time of the fetch, in days; what it counts from does not matter
    texts : title and headings, where it was a page
    anchors : of links into it
    hub, authority : scores over the greatest of the crawl
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
    """A finished crawl, as it is learned.

    Attributes
    ----------
    id, name : unique; for people
    topic, critic, critic_name : topic paths, fingerprint and folder of the critic
    replay : of a recorded web: time is counted in crawls, since a recording has no clock
    fetches : in any order
    waiting : URLs never fetched, with their scores in [0, 1]
    graduate : what its apprentice has learned, if one crawled
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
    """The fetches of a learned crawl, and how many of them were new, changed, failed ..."""

    fetches: int = 0
    relevant: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    failed: int = 0


def open_knowledge_file(path: Path) -> sqlite3.Connection:
    """Open a knowledge file to read; it runs nobody's code.

    Raises
    ------
    UserError
        There is none, it is no knowledge, cut short or damaged, or a newer version wrote it.
    """
    _check_whole(path)
    # the thread of the lessons reads it, too; nobody writes
    try:
        connection = open_database(
            path.resolve(), mode="ro", immutable=True, factory=_CheckedDatabase
        )
    except _DAMAGE_ERRORS as error:
        raise UserError(f"{path} holds no knowledge of a topic ({error})") from None
    connection.text_factory = _decode
    try:
        checked = connection.cursor()
        about = read_meta(checked)
        if about.get("kind") != KIND:
            raise UserError(f"{path} holds no knowledge of a topic but another database")
        _check_version(path, about.get("schema_version", ""))
        _check_schema(checked, path)
    except _DAMAGE_ERRORS as error:
        connection.close()
        raise UserError(f"{path} holds no knowledge of a topic ({error})") from None
    except UserError:
        connection.close()
        raise
    return connection


def _check_schema(connection: sqlite3.Connection | sqlite3.Cursor, path: Path) -> None:
    """Compare the tables with ours: SQLite would run a computed column of a stranger."""
    for name in missing_in(connection, TABLES):
        raise UserError(f"{path} is damaged: it has no table {name}; learn it anew")
    for name in foreign_to(connection, TABLES):
        raise UserError(f"{path} is no knowledge of ours: it has {name}, too; learn it anew")


def read_meta(connection: sqlite3.Connection | sqlite3.Cursor) -> dict[str, str]:
    """Return the table ``meta``."""
    return dict(connection.execute("SELECT key, value FROM meta"))


@contextmanager
def open_draft(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of a knowledge file, or a new one, that replaces it if nothing goes wrong.

    One process at a time may do this, others wait for it.

    Raises
    ------
    UserError
        The file cannot be replaced: it is no knowledge this version can read, another process
        takes long to replace it, or nothing can be written there.
    """
    busy = f"{path} is being learned by another process: do this again after that"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with changing(path, busy=busy), files.draft_of(path) as draft:
            files.discard_drafts(path)  # of those who were killed: ours is not made yet
            exists = path.exists()
            if exists:
                open_knowledge_file(path).close()
                shutil.copyfile(path, draft)
            with closing(open_database(draft)) as connection:
                # what is half written is thrown away whole: no journal has to undo it
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
            f"{path} cannot be learned on ({error}): it is damaged, or the disk is full"
        ) from None


def _check_whole(path: Path) -> None:
    """Tell by its header whether all of a SQLite file is there."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        raise UserError(
            f"there is no knowledge at {path}: make it with `focuscrawl knowledge learn`"
        ) from None
    except OSError as error:
        raise UserError(f"knowledge {path} cannot be read: {error.strerror}") from None
    if not head.startswith(_MAGIC) or len(head) < _HEAD:
        raise UserError(
            f"{path} holds no knowledge of a topic: it is no SQLite file, or cut short"
        )
    page = int.from_bytes(head[16:18], "big")
    expected = (page if page > 1 else 1 << 16) * int.from_bytes(head[28:32], "big")
    if size < expected:
        raise UserError(
            f"knowledge {path} is cut short: {size:,} of {expected:,} bytes; take a whole copy"
        )


def _check_version(path: Path, version: str) -> None:
    if version == str(SCHEMA_VERSION):
        return
    newer = version.isdecimal() and int(version) > SCHEMA_VERSION
    way_out = "upgrade focuscrawl" if newer else "learn it anew"
    raise UserError(
        f"knowledge {path} has schema version {version or 'unknown'}, this focuscrawl reads "
        f"{SCHEMA_VERSION}: {way_out}"
    )


class _CheckedDatabase(Database):
    """Raises a one-line error for a damaged file, whenever the damage is found."""

    def execute(self, *statement: Any) -> sqlite3.Cursor:
        """Run a statement, as a connection does."""
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
        raise UserError(f"the knowledge is damaged ({error}): learn it anew") from None


def _decode(text: bytes) -> str:
    return text.decode(errors="replace")
