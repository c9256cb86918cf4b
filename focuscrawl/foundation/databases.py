"""Opens SQLite files that may come from an untrusted person.

A manipulated journal next to an untrusted database file can make SQLite delete other files. The
schema or damaged pages of an untrusted database can make an SQL statement run forever. The
function `open_database` prevents such attacks, so no other module opens SQLite files.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import check_regular_file, open_nofollow

#: endings of the files that SQLite writes next to a database
SIDE_FILE_SUFFIXES = ("-journal", "-wal", "-shm")

_JOURNAL_END = bytes.fromhex("d9d505f920a163d7")  # after the name of another journal
_OBJECTS = "SELECT name, type, coalesce(sql, '') FROM sqlite_master"
# The most expensive statement of focuscrawl takes half a virtual-machine step a byte of the file.
_MIN_STEP_LIMIT = 100_000_000  # steps that every statement may take
_STEPS_A_BYTE = 100  # further steps for each byte that the file occupies on the disk
_CHECK_INTERVAL = 1_000_000  # steps
_STAT_BLOCK = 512  # bytes; the unit of st_blocks, independent of the file system


class Database(sqlite3.Connection):
    """SQLite connection with a limit of steps per statement, which grows with the file's size.

    A statement that exceeds the limit raises `sqlite3.OperationalError` with the code
    ``SQLITE_INTERRUPT``.
    """

    def limit_steps(self, path: Path) -> None:
        """Set the maximum number of steps of a statement, which depends on the size of a file."""
        self._steps = steps = _StepCounter(path)
        self.set_progress_handler(steps.exceed_limit, _CHECK_INTERVAL)

    def cursor(self, *factory: Any) -> Any:
        """Return a new cursor for one statement, and restart the count of steps."""
        self._steps.taken = 0
        return super().cursor(*factory)


class _StepCounter:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.taken = 0

    def exceed_limit(self) -> bool:
        """Count the steps since the last call; return True if SQLite has to stop the statement."""
        self.taken += _CHECK_INTERVAL
        if self.taken <= _MIN_STEP_LIMIT:
            return False
        return self.taken > _MIN_STEP_LIMIT + _STEPS_A_BYTE * self._allocated_bytes()

    def _allocated_bytes(self) -> int:
        """Return the bytes on the disk: a sparse file may pretend to have any length."""
        allocated = 0
        for path in (self._path, self._path.with_name(f"{self._path.name}-wal")):
            try:
                about = path.lstat()
            except OSError:
                continue
            allocated += min(about.st_size, about.st_blocks * _STAT_BLOCK)
        return allocated


def open_database(
    path: Path,
    *,
    mode: str = "rwc",
    immutable: bool = False,
    isolation_level: Literal["DEFERRED"] | None = None,
    timeout: float = 30.0,
    factory: type[Database] = Database,
) -> Database:
    """Open an SQLite file with a connection that any thread may use.

    Parameters
    ----------
    mode : str
        ``ro``, ``rw``, or ``rwc`` to create a missing file.
    immutable : bool
        Whether no program writes to the file; SQLite then ignores journals next to it.
    isolation_level : str or None
        See `sqlite3.connect`.
    timeout : float
        Seconds to wait for a lock of another writer.

    Raises
    ------
    UserError
        The file or a journal next to it is a link or not a regular file, a journal names another
        file, or the schema has a trigger or a virtual table.
    sqlite3.Error
        SQLite cannot read the file.
    """
    check_database_file(path)
    # quoted: the name of an untrusted folder must not add URI parameters
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
        connection.limit_steps(path)
        # views must not call functions with side effects
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        _refuse_triggers(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def check_database_file(path: Path) -> None:
    """Check an SQLite file, and the journals next to the file, before SQLite reads them.

    Raises
    ------
    UserError
        One of the files is a link or not a regular file, or a journal names another file. SQLite
        would take such a journal for a transaction over several databases and delete that file.
    """
    for ending in ("", *SIDE_FILE_SUFFIXES):
        each = path.with_name(f"{path.name}{ending}")
        check_regular_file(each)
    journal = path.with_name(f"{path.name}-journal")
    if not journal.exists():
        return
    with open(journal, "rb", opener=open_nofollow) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - len(_JOURNAL_END)))
        if file.read() == _JOURNAL_END:
            raise UserError(
                f"{journal} would make SQLite delete another file, which no journal of a crawl "
                "does: remove this journal if you trust the rest of the folder"
            )


def find_foreign_objects(
    connection: sqlite3.Connection | sqlite3.Cursor, tables: str
) -> list[str]:
    """Return a database's tables, views and indexes that the SQL script `tables` does not create.

    The result includes tables, views and indexes whose definition differs from that in the script.
    """
    ours = _created_by(tables)
    found = connection.execute(_OBJECTS).fetchall()
    return sorted(str(name) for name, *made in found if ours.get(name) != made)


def find_missing_objects(
    connection: sqlite3.Connection | sqlite3.Cursor, tables: str
) -> list[str]:
    """Return the names of tables and indexes that a database lacks or defines differently.

    The SQL script `tables` contains the expected definitions.
    """
    found = {name: made for name, *made in connection.execute(_OBJECTS).fetchall()}
    return sorted(name for name, made in _created_by(tables).items() if found.get(name) != made)


@contextmanager
def memory_database(tables: str) -> Iterator[sqlite3.Connection]:
    """Open a database in memory and run the SQL script `tables` on it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(tables)
        yield connection


def _created_by(tables: str) -> dict[str, list[str]]:
    with memory_database(tables) as ours:
        return {name: made for name, *made in ours.execute(_OBJECTS)}


def _refuse_triggers(connection: Database, path: Path) -> None:
    """Raise `UserError` if writing to a database or checking it would run code of its schema."""
    for name, kind, sql in connection.execute(_OBJECTS):
        if kind == "trigger" or str(sql).upper().startswith("CREATE VIRTUAL"):
            what = "trigger" if kind == "trigger" else "virtual table"
            raise UserError(
                f"{path} is damaged (it has the {what} {str(name)[:80]!r}, which focuscrawl never "
                "creates): use an intact copy"
            )
