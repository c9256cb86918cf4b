"""Crawl stores in PostgreSQL: one database schema a crawl."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.schema import CreateTable

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs
from focuscrawl.store import schema, worker_tables
from focuscrawl.store.store import CrawlStore, check_version, describe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection, Engine, Row

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_RESERVED = ("pg_", "information_schema", "public")
_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
# name:password@ in a path's part; anything before an @ in what begins like our URLs; libpq's own
_MAY_HOLD_PASSWORD = re.compile(
    r":[^/@]*@|^\s*(?:jdbc:)?postgres.*@|password\s*=", re.IGNORECASE | re.DOTALL
)
# a connection that the server breaks off is told of by whoever uses it, in one line
logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)

_CREATE = "a crawl needs the right CREATE on the database, or on its own schema"
_SELECT = "to read takes the right SELECT on all tables of the schema"
_PATIENCE = 10  # seconds to wait for the server when a crawl is opened


class Database(NamedTuple):
    """Where a crawl is: the database, and the name it has there.

    Attributes
    ----------
    url : with the password, if one was given
    name : of the crawl, and of the database's schema that holds it
    """

    url: sa.URL
    name: str

    @property
    def shown(self) -> str:
        """The URL as it may be shown: no user, no password."""
        bare = sa.URL.create(
            "postgresql", host=self.url.host, port=self.url.port, database=self.url.database
        )
        return f"{bare.render_as_string()}?crawl={self.name}"


def is_database_url(text: str) -> bool:
    """Tell whether a user means a database by `text`, and not a folder.

    However it is written: what may hold a password is never taken for the name of a folder, which
    would be shown, and made. `read_database_url` says what is wrong with it.
    """
    return _has_scheme(text) or _MAY_HOLD_PASSWORD.search(text) is not None


def read_database_url(text: str) -> Database:
    """Read ``postgresql://USER@HOST/DATABASE?crawl=NAME``; other parameters go to libpq.

    Raises
    ------
    UserError
        It is no such URL; the message does not repeat it, since a password may be in it.
    """
    example = "write postgresql://USER@HOST/DATABASE?crawl=NAME"
    if not _has_scheme(text):
        raise UserError(f"store is no PostgreSQL URL, and holds no crawl: {example}")
    try:
        url = sa.make_url(text)
        url.render_as_string(hide_password=False).encode()
    except (sa.exc.ArgumentError, ValueError):
        raise UserError(f"store cannot be read as a URL: {example}") from None
    if "@" in (url.host or ""):
        raise UserError("store has more than one @: write %40 for one in a name or password")
    query = dict(url.query)
    name = query.pop("crawl", "focuscrawl")
    if "password" in query:
        raise UserError("store has a password as a parameter: use PGPASSWORD or ~/.pgpass")
    if not url.database:
        raise UserError(f"store names no database: {example}")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.startswith(_RESERVED):
        raise UserError(
            "store: the name of a crawl is made of a-z, 0-9 and _, and begins with a letter, "
            "but not with pg_"
        )
    return Database(url.set(drivername="postgresql+psycopg", query=query), name)


def _has_scheme(text: str) -> bool:
    return "://" in text and text.partition("://")[0] in _SCHEMES


class DatabaseStore(CrawlStore):
    """A `CrawlStore` whose server may be away or say no at any time: a `UserError` then."""

    def __init__(self, engine: Engine, database: Database) -> None:
        super().__init__(engine, database.shown)
        self.database = database

    def rows(self, statement: sa.Select[Any] | sa.TextClause) -> Iterator[Row[Any]]:
        """Stream the rows of `statement`; see `CrawlStore.rows`."""
        try:
            yield from super().rows(statement)
        except sa.exc.DBAPIError as error:
            raise refused(error, self.database, _SELECT) from None

    def reopened(self) -> DatabaseStore:
        """Return the same store for reading, whether this one was closed or not."""
        return DatabaseStore(self.engine, self.database)


def connect(database: Database, *, persists: bool = False) -> Engine:
    """Return an engine whose connections are in the crawl's schema; connects to nothing yet.

    Parameters
    ----------
    persists : whoever uses it tries again where the server has broken off a connection
    """
    with needs("workers", "a crawl in PostgreSQL"):  # the driver is imported here
        return sa.create_engine(
            database.url,
            connect_args={
                "options": f"-csearch_path={database.name}",
                "connect_timeout": _PATIENCE,
                "application_name": "focuscrawl",
            },
            # threads of a worker that ask at the same time: two mostly, five at times
            pool_size=2,
            max_overflow=3,
            pool_use_lifo=True,
            pool_pre_ping=not persists,
        )


def open_database(
    database: Database, identity: Mapping[str, str], about: Mapping[str, str]
) -> tuple[CrawlStore, bool]:
    """Open the crawl of this name, or create it; several workers may at the same time.

    Parameters
    ----------
    identity : what makes a crawl this crawl
    about : kept with a new crawl for people to read; ``shards`` among it

    Returns
    -------
    The store, and whether it is new

    Raises
    ------
    UserError
        There is no such database, no right to it, another crawl has the name, or something else.
    """
    engine = connect(database, persists=True)
    try:
        with engine.begin() as connection:
            lock = sa.func.pg_advisory_xact_lock(sa.func.hashtext(f"focuscrawl {database.name}"))
            connection.execute(sa.select(lock))
            new = not holds_anything(connection, database.name)
            if new:
                _create(connection, database.name, {**about, **identity})
            store = DatabaseStore(engine, database)
            if not new:  # while nobody else migrates it
                _check(store, database, identity)
    except sa.exc.DBAPIError as error:
        engine.dispose()
        raise refused(error, database) from None
    except UserError:
        engine.dispose()
        raise
    return store, new


def holds_crawl(database: Database) -> bool:
    """Tell whether there is a crawl of this name, or something else; raises as `open_database`."""
    engine = connect(database)
    try:
        with engine.connect() as connection:
            return holds_anything(connection, database.name)
    except sa.exc.DBAPIError as error:
        raise refused(error, database) from None
    finally:
        engine.dispose()


def shared_crawls(database: Database) -> list[str]:
    """Return the names of all crawls in the database; raises as `open_database` does."""
    holding = sa.text(
        "SELECT n.nspname FROM pg_namespace n WHERE 3 = (SELECT count(*) FROM pg_class c WHERE "
        "c.relnamespace = n.oid AND c.relname IN ('worker', 'shard', 'evidence')) ORDER BY 1"
    )
    engine = connect(database)
    try:
        with engine.connect() as connection:
            return [name for (name,) in connection.execute(holding)]
    except sa.exc.DBAPIError as error:
        raise refused(error, database, _SELECT) from None
    finally:
        engine.dispose()


def read_database(database: Database) -> DatabaseStore:
    """Open the crawl of this name for reading; raises as `open_database` does."""
    engine = connect(database)
    store = DatabaseStore(engine, database)
    try:
        with engine.connect() as connection:
            if not holds_anything(connection, database.name):
                raise UserError(f"store {database.shown}: there is no crawl of this name")
        _known(store, database)
    except sa.exc.DBAPIError as error:
        engine.dispose()
        raise refused(error, database, _SELECT) from None
    except UserError:
        engine.dispose()
        raise
    return store


def holds_anything(connection: Connection, name: str) -> bool:
    """Tell whether there is a schema of this name with a table in it."""
    found = sa.text("SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace(:name) LIMIT 1")
    return connection.execute(found, {"name": name}).first() is not None


def _create(connection: Connection, name: str, identity: Mapping[str, str]) -> None:
    connection.execute(sa.schema.CreateSchema(name, if_not_exists=True))
    for table in [*schema.metadata.sorted_tables, *worker_tables.metadata.sorted_tables]:
        # A foreign key costs a look-up and a lock for every link and URL: a third of what a
        # page costs the server. Whoever writes here writes parents first as it is
        connection.execute(CreateTable(table, include_foreign_key_constraints=[]))
        for index in table.indexes:
            connection.execute(sa.schema.CreateIndex(index))
    connection.execute(sa.text("CREATE INDEX ix_url_host ON url (host)"))  # to load shards by
    for column in (schema.models.c.state, worker_tables.instances.c.data):
        # numbers that hardly become smaller, and only the latest are kept: compressing them takes
        # a fifth of all that the server does in a crawl
        external = f"ALTER TABLE {column.table.name} ALTER {column.name} SET STORAGE EXTERNAL"
        connection.execute(sa.text(external))
    for view, select in schema.VIEWS.items():
        connection.execute(sa.DDL(f"CREATE VIEW {view} AS {select}"))  # type: ignore[no-untyped-call]
    describe(connection, identity)
    connection.execute(
        sa.insert(worker_tables.crawl),
        {
            "id": 1,
            "fetched": 0,
            "granted": 0,
            "posted": 0,
            "handed_in": 0,
            "relevance": 0.0,
            "last_relevant": 0,
        },
    )
    numbers = range(int(identity["shards"]))
    connection.execute(sa.insert(worker_tables.shard), [{"number": number} for number in numbers])


def _known(store: CrawlStore, database: Database) -> dict[str, str]:
    """Return the crawl's identity, migrated if need be."""
    try:
        kept = store.identity()
    except sa.exc.ProgrammingError as error:
        if getattr(error.orig, "sqlstate", "") != "42P01":  # no such table
            raise
        _check_right(store, database)
        raise UserError(
            f"store {database.shown}: the schema {database.name} of the database holds something "
            "else than a crawl; give the crawl another name with ?crawl=NAME"
        ) from None
    version = kept.get("schema_version", "")
    check_version(version, f"store {database.shown}", "give the crawl another name")
    return kept


def _check_right(store: CrawlStore, database: Database) -> None:
    """Raise `UserError` if it is for want of a right that no table is seen."""
    usage = sa.select(sa.func.has_schema_privilege(database.name, "USAGE"))
    with store.engine.connect() as connection:
        if not connection.execute(usage).scalar():
            raise UserError(
                f"store {database.shown}: permission denied for schema {database.name}; "
                "it takes the right USAGE on it"
            )


def _check(store: CrawlStore, database: Database, identity: Mapping[str, str]) -> None:
    kept = _known(store, database)
    version = int(kept["schema_version"])
    if version < schema.SCHEMA_VERSION:
        store.migrate(version)
    for key, value in identity.items():
        if kept.get(key, "") != value:
            raise UserError(
                f"store {database.shown} holds another crawl: its {key} is "
                f"{kept.get(key) or 'none'}, not {value or 'none'}; "
                "give this one another name with ?crawl=NAME"
            )


def refused(
    error: sa.exc.DBAPIError,
    database: Database,
    right: str = _CREATE,
) -> UserError:
    """Return what the server says, in one line, without the password.

    Parameters
    ----------
    right : what to say of rights if that is what is missing
    """
    said = " ".join(str(error.orig).split()) or type(error.orig).__name__
    hint = ""
    if getattr(error.orig, "sqlstate", "") == "42501":
        hint = f"; {right}"
    password = database.url.password
    if password:
        said = said.replace(str(password), "***")
    return UserError(f"store {database.shown}: {said}{hint}")
