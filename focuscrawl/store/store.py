"""Open, check and read a crawl store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event

from focuscrawl.errors import UserError
from focuscrawl.foundation.databases import Database, open_database
from focuscrawl.foundation.drafts import draft_of
from focuscrawl.store import schema
from focuscrawl.store.soundness import check_content, say_damage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sqlalchemy import Engine, Row


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
