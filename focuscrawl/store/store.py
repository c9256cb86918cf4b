"""Open, check and read a crawl store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event

from focuscrawl.errors import UserError
from focuscrawl.store import schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

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
        draft = path.with_name(f"{path.name}.new")
        for left_behind in path.parent.glob(f"{draft.name}*"):
            left_behind.unlink()
        engine = _sqlite(draft)
        with engine.begin() as connection:
            schema.metadata.create_all(connection)
            rows = {"schema_version": str(schema.SCHEMA_VERSION), **identity}
            connection.execute(
                sa.insert(schema.meta), [{"key": k, "value": v} for k, v in rows.items()]
            )
        engine.dispose()  # the last connection to go empties the write-ahead log into the file
        draft.replace(path)
        return cls(_sqlite(path), str(path))

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> CrawlStore:
        """Open an existing store.

        Parameters
        ----------
        read_only : only read, also where nothing can be written

        Raises
        ------
        UserError
            There is none, it is no crawl store, or a newer version wrote it.
        """
        if not path.is_file():
            raise UserError(f"{path.parent} holds no crawl: there is no {path.name} in it")
        store = cls(_reading(path) if read_only else _sqlite(path), str(path))
        try:
            version = store.identity().get("schema_version", "")
        except sa.exc.DatabaseError as error:
            store.close()
            raise UserError(f"{path} is no crawl store ({error.orig})") from error
        if version != str(schema.SCHEMA_VERSION):
            store.close()
            newer = version.isdigit() and int(version) > schema.SCHEMA_VERSION
            way_out = "upgrade focuscrawl" if newer else "crawl into a new crawl_dir"
            raise UserError(
                f"{path} has schema version {version or 'unknown'}, this focuscrawl reads "
                f"{schema.SCHEMA_VERSION}: {way_out}"
            )
        if not read_only:  # a crawl begun before there was this table
            schema.answer.create(store.engine, checkfirst=True)
        return store

    def identity(self) -> dict[str, str]:
        """Return what the crawl was started with, and the schema version."""
        with self.engine.connect() as connection:
            rows = connection.execute(sa.select(schema.meta.c.key, schema.meta.c.value))
            return {row.key: row.value for row in rows}

    def rows(self, statement: sa.Select[Any] | sa.TextClause) -> Iterator[Row[Any]]:
        """Stream the rows of `statement` without holding them all."""
        with self.engine.connect() as connection:
            yield from connection.execution_options(yield_per=10_000).execute(statement)

    def close(self) -> None:
        """Give back the connections."""
        self.engine.dispose()


def _sqlite(path: Path) -> Engine:
    engine = sa.create_engine(
        f"sqlite:///{path}", connect_args={"check_same_thread": False, "timeout": 30}
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

    event.listen(engine, "connect", _distrust)
    return engine


def _reading(path: Path) -> Engine:
    # SQLite needs its shared-memory file to read beside a writer; where it cannot make one
    # nobody can be writing, and the file may be taken as it is
    how = "mode=ro" if os.access(path.parent, os.W_OK) else "mode=ro&immutable=1"
    name = quote(str(path.resolve()))
    engine = sa.create_engine(
        f"sqlite:///file:{name}?{how}&uri=true",
        connect_args={"check_same_thread": False, "timeout": 30},
    )
    event.listen(engine, "connect", _distrust)
    return engine


def _distrust(connection: Any, _: Any) -> None:
    # views and triggers of a stranger's file may call nothing that has an effect outside of it
    connection.execute("PRAGMA trusted_schema = OFF")
