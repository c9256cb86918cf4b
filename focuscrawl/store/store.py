"""Open, check and read a crawl store."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event

from focuscrawl.errors import UserError
from focuscrawl.foundation.drafts import draft_of
from focuscrawl.foundation.extras import needs
from focuscrawl.store import schema
from focuscrawl.store.migrations import migrate, revision
from focuscrawl.store.soundness import check_content, check_file, say_damage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection, Engine, Row

_VERSION = re.compile(r"[0-9]{1,9}")


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
                describe(connection, identity)
            engine.dispose()  # the last connection to go empties the write-ahead log into the file
        return cls(_sqlite(path), str(path))

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False, whole: bool = False) -> CrawlStore:
        """Open an existing store; one of an earlier schema is migrated.

        Parameters
        ----------
        read_only : only read, also where nothing can be written, and migrate nothing: what is
            read is in every schema
        whole : look at every value of a large one, too, which takes as long as reading it

        Raises
        ------
        UserError
            There is none, it is no crawl store, or a damaged one, a newer version wrote it, or
            it is an earlier one and the extra `migrations` is not installed.
        """
        if not path.is_file():
            raise UserError(f"{path.parent} holds no crawl: there is no {path.name} in it")
        check_file(path)
        store = cls(_reading(path) if read_only else _sqlite(path), str(path))
        try:
            version = str(store.identity().get("schema_version", ""))
            known = check_version(version, str(path), "crawl into a new crawl_dir")
            with store.engine.connect() as connection:
                check_content(connection, str(path), known, whole=whole)
            if known < schema.SCHEMA_VERSION and not read_only:
                store.migrate(known)
        except (sa.exc.DatabaseError, UnicodeError) as error:  # of SQLite's own message, even
            store.close()
            what = getattr(error, "orig", error)
            raise UserError(f"{path} is no crawl store ({what})") from error
        except BaseException:
            store.close()
            raise
        return store

    def migrate(self, version: int) -> None:
        """Bring the tables, of schema `version`, up to date, all or nothing."""
        with self.engine.connect() as connection:
            if self.engine.dialect.name == "sqlite":
                # Python's driver commits before it changes tables, unless told to leave that
                # to us: a process killed midway must leave the old store behind
                driver: Any = connection.connection.driver_connection
                driver.isolation_level = None
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            with needs("migrations", f"{self.where}, a store of schema {version},"):
                migrate(connection, version)
            connection.commit()
            if self.engine.dialect.name == "sqlite":
                connection.invalidate()

    def reopened(self) -> CrawlStore:
        """Return the same store for reading, whether this one was closed or not.

        What is in it is not checked once more.
        """
        path = Path(self.where)
        check_file(path)
        return CrawlStore(_reading(path), self.where)

    def identity(self) -> dict[str, str]:
        """Return what the crawl was started with, and the schema version."""
        with self.engine.connect() as connection:
            rows = connection.execute(sa.select(schema.meta.c.key, schema.meta.c.value))
            return {row.key: row.value for row in rows}

    def has(self, table: sa.Table) -> bool:
        """Tell whether a store, maybe of an earlier schema, has a table."""
        return sa.inspect(self.engine).has_table(table.name)

    def rows(self, statement: sa.Select[Any] | sa.TextClause) -> Iterator[Row[Any]]:
        """Stream the rows of `statement` without holding them all."""
        with self.engine.connect() as connection:
            streaming = connection.execution_options(yield_per=10_000)
            # closed also where somebody wants the first rows only: it is a cursor of the server
            with streaming.execute(statement) as result:
                yield from result

    def row(self, statement: sa.Select[*tuple[Any, ...]]) -> Row[*tuple[Any, ...]]:
        """Return the one row of `statement`."""
        (row,) = self.rows(statement)
        return row

    def close(self) -> None:
        """Give back the connections."""
        self.engine.dispose()


def describe(connection: Connection, identity: Mapping[str, str]) -> None:
    """Write into new tables which crawl they are for, and of which schema they are."""
    rows = {"schema_version": str(schema.SCHEMA_VERSION), **identity}
    connection.execute(sa.insert(schema.meta), [{"key": k, "value": v} for k, v in rows.items()])
    connection.execute(
        sa.insert(schema.alembic_version), {"version_num": revision(schema.SCHEMA_VERSION)}
    )


def check_version(version: str, where: str, otherwise: str) -> int:
    """Return the schema `version` of a store, if it can be read or migrated.

    Parameters
    ----------
    where : the store, for the message
    otherwise : the way out where it is no newer one
    """
    number = int(version) if _VERSION.fullmatch(version) else 0
    if 1 <= number <= schema.SCHEMA_VERSION:
        return number
    way_out = "upgrade focuscrawl" if number else otherwise
    raise UserError(
        f"{where} has schema version {version[:9] or 'unknown'}, this focuscrawl reads "
        f"{schema.SCHEMA_VERSION}: {way_out}"
    )


def _sqlite(path: Path) -> Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        connect_args={"check_same_thread": False, "timeout": 30},
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        # Write-ahead logging: readers do not wait for the crawl, a killed process loses nothing
        # committed. NORMAL syncs before the log is copied into the database, and not at each
        # commit: a power cut costs what the system had not yet written of the log, the last half
        # minute or so of fetches, which are made again; the database stays whole. See
        # docs/endurance.md.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -65536")

    _distrust(engine, path)
    return engine


def _reading(path: Path) -> Engine:
    # SQLite needs its shared-memory file to read beside a writer, and cannot make one in a folder
    # that is not ours. Where there is no log either, the file may be taken as it is
    how = {"mode": "ro", "uri": "true"}
    if not os.access(path.parent, os.W_OK) and not _has_log(path):
        how["immutable"] = "1"
    # in parts: of one text SQLAlchemy would undo the quoting, and what a folder is called, by
    # whoever has sent it, would say how it is opened, and which file
    name = f"file:{quote(str(path.resolve()))}"
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=name, query=how),
        connect_args={"check_same_thread": False, "timeout": 30},
    )
    _distrust(engine, path)
    return engine


def _has_log(path: Path) -> bool:
    """Tell whether there are fetches that are not yet in the database itself."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _distrust(engine: Engine, path: Path) -> None:
    """Let a stranger's file call nothing, and say in a line what is wrong with it."""

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        # views and the like may call nothing that has an effect outside of the file
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")

    event.listen(engine, "handle_error", lambda context: say_damage(context, str(path)))
