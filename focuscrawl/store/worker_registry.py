"""Who works on a crawl that several workers share, and what people ask of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from focuscrawl.errors import UserError
from focuscrawl.store.postgres import DatabaseStore, refused
from focuscrawl.store.worker_tables import ALIVE, crawl, evidence, shard, worker

if TYPE_CHECKING:
    from focuscrawl.store.store import CrawlStore

_ASKED = 3  # schema from which on workers can be asked for something, and say how far they are
_NOW = sa.func.clock_timestamp()


class Worker(NamedTuple):
    """A worker that has neither left nor been given up by the others.

    Attributes
    ----------
    id, name : number; machine and process
    since, heard, lease_left : seconds since it joined, since it last renewed its lease, and until
        that runs out; by the clock of the server
    fetched, outstanding, in_flight : pages it recorded, fetches granted beside these, requests
        under way
    pace : pages a second of late, by its own count
    queued : URLs that wait
    model_version : of the model it scores with
    shards : that it holds
    budget : of the crawl, as it was told
    unread : rows of evidence on its shards that it has not taken in; None: it is loading
    paused, stop : it is paused; it is asked to end
    """

    id: int
    name: str
    since: float
    heard: float
    lease_left: float
    fetched: int
    outstanding: int
    in_flight: int | None
    pace: float
    queued: int
    model_version: int
    shards: int
    budget: int | None
    unread: int | None
    paused: bool
    stop: bool

    @property
    def alive(self) -> bool:
        """False if its lease has run out and nobody has taken over yet."""
        return self.lease_left > 0.0


def is_shared(store: CrawlStore) -> bool:
    """Tell whether a store is of a crawl that workers share."""
    return isinstance(store, DatabaseStore)


def read_workers(store: CrawlStore) -> list[Worker]:
    """Return who works on a crawl at the moment, in the order they joined."""
    w = worker.c
    held = sa.select(sa.func.count()).where(shard.c.owner == w.id).scalar_subquery()
    waiting = (
        sa.select(sa.func.count())
        .select_from(shard.join(evidence, evidence.c.shard == shard.c.number))
        .where(shard.c.owner == w.id, evidence.c.id > w.taken_in, evidence.c.applied_by != w.id)
        .scalar_subquery()
    )
    columns: dict[str, sa.ColumnElement[Any]] = {
        **w,  # what it says of itself
        "since": _seconds(_NOW - w.joined_at),
        "heard": _seconds(_NOW - w.renewed_at),
        "lease_left": _seconds(w.expires - _NOW),
        "shards": held,
        "unread": sa.case((w.taken_in.is_not(None), waiting)),
    }
    if _schema(store) < _ASKED:
        columns |= dict.fromkeys(("in_flight", "budget", "unread"), sa.null())
        columns |= dict.fromkeys(("paused", "stop"), sa.false())
    named = [columns[name].label(name) for name in Worker._fields]
    rows = store.rows(sa.select(*named).where(w.state == ALIVE).order_by(w.id))
    return [Worker._make(row) for row in rows]


def is_paused(store: CrawlStore) -> bool:
    """Tell whether a person wants the workers to pause, those to come included."""
    if _schema(store) < _ASKED:
        return False
    return bool(store.row(sa.select(crawl.c.paused)).paused)


def ask_pause(store: DatabaseStore, *, paused: bool) -> None:
    """Ask all workers to pause, those to come included, or to go on.

    Raises
    ------
    UserError
        The store is of an earlier schema, or cannot be written.
    """
    _ask(store, sa.update(crawl).values(paused=paused))


def ask_stop(store: DatabaseStore) -> None:
    """Ask the workers that there are to end; raises as `ask_pause` does."""
    _ask(store, sa.update(worker).where(worker.c.state == ALIVE).values(stop=True))


def _ask(store: DatabaseStore, statement: sa.Update) -> None:
    schema = _schema(store)
    if schema < _ASKED:
        raise UserError(
            f"store {store.where} has schema version {schema}, and its workers hear nothing: end "
            "them with SIGTERM; the next one that is started migrates it"
        )
    try:
        with store.engine.begin() as connection:
            connection.execute(statement)
    except sa.exc.DBAPIError as error:
        raise refused(error, store.database, "do it as the role that crawls") from None


def _schema(store: CrawlStore) -> int:
    return int(store.identity()["schema_version"])


def _seconds(interval: sa.ColumnElement[Any]) -> sa.ColumnElement[float]:
    return sa.cast(sa.extract("epoch", interval), sa.Float)
