"""The SQLite file of a knowledge: its tables; checked before it is read, replaced as a whole."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from filelock import lock_descriptor

from focuscrawl.errors import UserError
from focuscrawl.foundation import drafts
from focuscrawl.foundation.plain_files import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: raised by one with every change of the tables; see CHANGELOG
SCHEMA_VERSION = 1
#: says in `meta` what the file is
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

_SCHEMA = "SELECT name, sql FROM sqlite_master"
_MAGIC = b"SQLite format 3\0"
#: of a message of SQLite's own, even
_DAMAGE = (sqlite3.DatabaseError, UnicodeError)
_HEAD = 100  # bytes of a SQLite header


class _Distrustful(sqlite3.Connection):
    """Says in a line that a file is damaged, whoever finds out."""

    def execute(self, *statement: Any) -> sqlite3.Cursor:
        """Run a statement, as a connection does."""
        return self.cursor(_DistrustfulCursor).execute(*statement)


class _DistrustfulCursor(sqlite3.Cursor):
    def execute(self, *statement: Any) -> Self:
        with _damage():
            return super().execute(*statement)

    def __next__(self) -> Any:
        with _damage():
            return super().__next__()

    def fetchone(self) -> Any:
        with _damage():
            return super().fetchone()

    def fetchall(self) -> list[Any]:
        with _damage():
            return super().fetchall()


@contextmanager
def _damage() -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise UserError(f"the knowledge is damaged ({error}): learn it anew") from None


def _decode(text: bytes) -> str:
    return text.decode(errors="replace")


def open_file(path: Path) -> sqlite3.Connection:
    """Open a knowledge file to read; it runs nobody's code.

    Raises
    ------
    UserError
        There is none, it is no knowledge, cut short or damaged, or a newer version wrote it.
    """
    _check_whole(path)
    name = quote(str(path.resolve()))
    # a strategy is asked from the thread of its lessons, too; nobody writes
    connection = sqlite3.connect(
        f"file:{name}?mode=ro&immutable=1", uri=True, check_same_thread=False, factory=_Distrustful
    )
    connection.text_factory = _decode
    try:
        checked = connection.cursor()
        checked.execute("PRAGMA trusted_schema = OFF")
        about = read_meta(checked)
        if about.get("kind") != KIND:
            raise UserError(f"{path} holds no knowledge of a topic but another database")
        _check_version(path, about.get("schema_version", ""))
        _check_schema(checked, path)
    except _DAMAGE as error:
        connection.close()
        raise UserError(f"{path} holds no knowledge of a topic ({error})") from None
    except UserError:
        connection.close()
        raise
    return connection


def _check_schema(connection: sqlite3.Connection | sqlite3.Cursor, path: Path) -> None:
    """Compare the tables with ours: a trigger or a computed column would be run when it learns."""
    with closing(sqlite3.connect(":memory:")) as ours:
        ours.executescript(TABLES)
        expected = dict(ours.execute(_SCHEMA))
    found = dict(connection.execute(_SCHEMA))
    missing = {name for name in expected if found.get(name) != expected[name]}
    if missing:
        raise UserError(f"{path} is damaged: it has no table {min(missing)}; learn it anew")
    if set(found) - set(expected):
        more = min(set(found) - set(expected))
        raise UserError(f"{path} is no knowledge of ours: it has {more}, too; learn it anew")


def read_meta(connection: sqlite3.Connection | sqlite3.Cursor) -> dict[str, str]:
    """Return what the file says of itself."""
    return dict(connection.execute("SELECT key, value FROM meta"))


@contextmanager
def draft_of(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a copy of a knowledge file, or a new one, that takes its place if nothing goes wrong.

    Otherwise the file stays as it was. One process at a time may do this.

    Raises
    ------
    UserError
        The file cannot be replaced: it is no knowledge this version can read, another process
        is replacing it, or nothing can be written there.
    """
    exists = path.exists()
    if exists:
        open_file(path).close()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path), drafts.draft_of(path) as draft:
            if exists:
                shutil.copyfile(path, draft)
            with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                # what is half written is thrown away whole: no journal has to undo it
                connection.execute("PRAGMA journal_mode = OFF")
                connection.execute("PRAGMA synchronous = OFF")
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA cache_size = -65536")
                if not exists:
                    connection.executescript(TABLES)
                connection.execute("BEGIN")
                yield connection
                connection.execute("COMMIT")
            with draft.open("rb") as file:
                os.fsync(file.fileno())
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    except sqlite3.DatabaseError as error:
        raise UserError(
            f"{path} cannot be learned on ({error}): it is damaged, or the disk is full"
        ) from None


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let nobody else learn."""
    name = path.with_name(f".{path.name}.new")
    with open(name, "ab", opener=open_plain) as lock:
        locked = lock_descriptor(lock.fileno(), blocking=False)
        if (
            not locked
            or not name.exists()
            or not os.path.samestat(name.lstat(), os.fstat(lock.fileno()))
        ):
            raise UserError(f"{path} is being learned by another process: wait for it")
        try:
            yield
        finally:
            name.unlink()


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
