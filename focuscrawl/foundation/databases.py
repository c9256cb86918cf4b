"""SQLite files, which may be a stranger's: every one is opened here, and nowhere else.

What lies beside such a file can make SQLite delete or write other files, what its schema says can
run without an end, and so can reading pages that name each other. None of it comes to that.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import check_plain, open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: what SQLite writes beside a file
BESIDE = ("-journal", "-wal", "-shm")

_JOURNAL_END = bytes.fromhex("d9d505f920a163d7")  # after the name of another journal
_OBJECTS = "SELECT name, type, coalesce(sql, '') FROM sqlite_master"
# Each row of a crawl takes some bytes, and reading it some steps: the dearest statements of our
# own take half a step a byte
_STEPS = 100_000_000  # of SQLite's, in any statement
_STEPS_A_BYTE = 100  # of the file, as far as it takes room on the disk
_LOOK = 1_000_000  # steps from one look to the next
_BLOCK = 512  # bytes, whatever those of the file system are


class Database(sqlite3.Connection):
    """A connection that gives a statement up which takes far more steps than its file is worth.

    `sqlite3.OperationalError` is raised then, of the code ``SQLITE_INTERRUPT``.
    """

    def bound(self, path: Path) -> None:
        """Give up from now on what does not end."""
        self._steps = steps = _Steps(path)
        self.set_progress_handler(steps.further, _LOOK)

    def cursor(self, *factory: Any) -> Any:
        """Return a cursor, as every statement has one."""
        self._steps.taken = 0
        return super().cursor(*factory)


class _Steps:
    """Counts the steps of a statement of SQLite's."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.taken = 0

    def further(self) -> bool:
        """Tell whether it is time to give up."""
        self.taken += _LOOK
        return self.taken > _STEPS and self.taken > _STEPS + _STEPS_A_BYTE * self._room()

    def _room(self) -> int:
        """Return the bytes that the file takes: a file full of holes may seem of any length."""
        room = 0
        for path in (self._path, self._path.with_name(f"{self._path.name}-wal")):
            try:
                about = path.lstat()
            except OSError:
                continue
            room += min(about.st_size, about.st_blocks * _BLOCK)
        return room


def open_database(
    path: Path,
    *,
    mode: str = "rwc",
    immutable: bool = False,
    isolation_level: Literal["DEFERRED"] | None = None,
    timeout: float = 30.0,
    factory: type[Database] = Database,
) -> Database:
    """Open an SQLite file, for any thread.

    Parameters
    ----------
    mode : ``ro``, ``rw``, or ``rwc`` where it may have to be made
    immutable : nobody writes to it: what lies beside it is not looked at
    isolation_level : of `sqlite3.connect`
    timeout : seconds that others may take to write

    Raises
    ------
    UserError
        It is a link or none of the files that could be one, or what is beside it, or a journal
        there names another one; or the schema has a trigger or a virtual table.
    sqlite3.Error
        SQLite cannot read it.
    """
    check_file(path)
    # what a folder is called, by whoever has sent it, does not say how it is opened, nor which
    # file is
    name = f"file:{quote(str(path.absolute()))}?mode={mode}{'&immutable=1' if immutable else ''}"
    connection = sqlite3.connect(
        name,
        uri=True,
        isolation_level=isolation_level,
        timeout=timeout,
        check_same_thread=False,
        factory=factory,
    )
    try:
        connection.bound(path)
        # views and the like may call nothing that has an effect outside of the file
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        _refuse_programs(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def check_file(path: Path) -> None:
    """Look at an SQLite file, and at what is beside it, before SQLite does.

    Raises
    ------
    UserError
        Something there is a link, or no plain file; or a journal names another one: SQLite takes
        that for a transaction over several databases, and deletes the file it names.
    """
    for ending in ("", *BESIDE):
        each = path.with_name(f"{path.name}{ending}")
        check_plain(each)
    journal = path.with_name(f"{path.name}-journal")
    if not journal.exists():
        return
    with open(journal, "rb", opener=open_plain) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - len(_JOURNAL_END)))
        if file.read() == _JOURNAL_END:
            raise UserError(
                f"{journal} names a file for SQLite to delete, which the journal of a crawl "
                "never does: remove it, if you trust what else is there"
            )


def foreign_to(connection: sqlite3.Connection | sqlite3.Cursor, tables: str) -> list[str]:
    """Return the names of what is in a database and is not as `tables` makes it, in SQL."""
    ours = _made_by(tables)
    found = connection.execute(_OBJECTS).fetchall()
    return sorted(str(name) for name, *made in found if ours.get(name) != made)


def missing_in(connection: sqlite3.Connection | sqlite3.Cursor, tables: str) -> list[str]:
    """Return the names of what `tables` makes, in SQL, and a database has not, or otherwise."""
    found = {name: made for name, *made in connection.execute(_OBJECTS).fetchall()}
    return sorted(name for name, made in _made_by(tables).items() if found.get(name) != made)


@contextmanager
def in_memory(tables: str) -> Iterator[sqlite3.Connection]:
    """Open a database that is kept nowhere, with what `tables` makes, in SQL."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(tables)
        yield connection


def _made_by(tables: str) -> dict[str, list[str]]:
    with in_memory(tables) as ours:
        return {name: made for name, *made in ours.execute(_OBJECTS)}


def _refuse_programs(connection: Database, path: Path) -> None:
    """Raise `UserError` if writing to a database, or checking it, would run what is in it."""
    for name, kind, sql in connection.execute(_OBJECTS):
        if kind == "trigger" or str(sql).upper().startswith("CREATE VIRTUAL"):
            what = "trigger" if kind == "trigger" else "virtual table"
            raise UserError(
                f"{path} is damaged (it has the {what} {str(name)[:80]!r}, and no file of ours "
                "has one): take a whole copy"
            )
