"""A worker among workers: its lease, its shards, its share of the budget, all in the database."""

from __future__ import annotations

import math
import os
import socket
import time
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sqlalchemy as sa

from focuscrawl.crawl.visit import NOT_MODIFIED
from focuscrawl.store.worker_tables import ALIVE, LEFT, LOST, crawl, lease, shard, worker
from focuscrawl.workers.balance import ShardBalance
from focuscrawl.workers.budget import lot, nearly, threshold
from focuscrawl.workers.recent_fetches import FetchShares
from focuscrawl.workers.worker_state import CrawlTotals, LeaseLostError, WorkerState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Engine, Row

    from focuscrawl.workers.budget import BudgetShare

_NOW = sa.func.clock_timestamp()
_OTHERS = 3.0  # seconds for which who gave a shard away leaves it to others
_READ = 1.0  # seconds after which a shard is held for read if nothing is posted that would tell
_FRESH = 2.0  # seconds after which offers are held for out of date

# A row of every worker that is alive, with all that a worker needs to know of the rest; its own
# is as it was before. Whether the server still knows of the renewal after a crash does not
# matter, see `Membership.bury`: nobody waits for its disk.
_COMPARE = sa.text(f"""
    WITH renewed AS (
        UPDATE worker SET renewed_at = clock_timestamp(),
            expires = clock_timestamp() + make_interval(secs => :seconds),
            offers = :offers, pace = :pace, queued = :queued, idle_at = :idle_at,
            model_version = :model_version, taken_in = :taken_in, in_flight = :in_flight,
            paused = :paused
        WHERE id = :me AND state = '{ALIVE}'
        RETURNING outstanding, fetched AS recorded, stop
    ), shards AS (
        SELECT coalesce(array_agg(number) FILTER (WHERE owner = :me), '{{}}') AS mine,
            count(*) FILTER (WHERE owner IS NULL) AS free FROM shard
    ), others AS (
        SELECT id AS worker, pace, idle_at, taken_in, fetched AS made,
            (SELECT array_agg(number) FROM shard
                WHERE owner = worker.id AND number = ANY(:on_the_way)) AS got,
            CASE WHEN id <> :me THEN offers END AS offers,
            renewed_at > clock_timestamp() - make_interval(secs => :fresh) AS fresh,
            bool_or(expires < clock_timestamp()) OVER () AS late
        FROM worker WHERE state = '{ALIVE}'
    )
    SELECT others.*, renewed.*, shards.*, crawl.fetched, crawl.granted, crawl.posted,
        crawl.relevance, crawl.last_relevant, crawl.trainer,
        crawl.paused, (SELECT max(version) FROM models) AS model,
        set_config('synchronous_commit', 'off', true)
    FROM crawl CROSS JOIN shards LEFT JOIN renewed ON true LEFT JOIN others ON true""")

# As `CrawlState.reached` counts; whatever else is known is a seed, or where one redirects.
_REACHED = sa.text(f"""
    SELECT NOT EXISTS (SELECT FROM url)
        OR EXISTS (SELECT FROM page WHERE status BETWEEN 200 AND 299 OR status = {NOT_MODIFIED})
    """)


class Membership:
    """One worker's row, and what it does with the others'.

    Parameters
    ----------
    me : its number
    seconds : for which a lease holds
    shards, budget : of the crawl; a budget of 0 is none
    learns : whether the crawl's strategy does
    """

    def __init__(self, me: int, *, seconds: float, shards: int, budget: int, learns: bool) -> None:
        self.me = me
        self.seconds = seconds
        self.shards = shards
        self._budget = budget
        self._learns = learns
        self._owned: frozenset[int] = frozenset()
        self._balance = ShardBalance(me, shards)
        self._shares = FetchShares()
        self._released: dict[int, float] = {}  # when shards were given away
        # by shard given away: its new owner, `posted` when it was seen there, and the time
        self._followed: dict[int, tuple[int, int, float]] = {}

    @classmethod
    def join(
        cls, connection: Connection, *, seconds: float, shards: int, budget: int, learns: bool
    ) -> Self:
        """Add a worker to those of the crawl."""
        row = {
            "name": f"{socket.gethostname()}:{os.getpid()}",
            "state": ALIVE,
            "joined_at": _NOW,
            "renewed_at": _NOW,
            "expires": _NOW + _span(seconds),
            "batch": 0,
            "outstanding": 0,
            "fetched": 0,
            "pace": 0.0,
            "offers": b"",
            "queued": 0,
            "model_version": 0,
            "budget": budget,
        }
        made = connection.execute(sa.insert(worker).values(row).returning(worker.c.id))
        me = int(made.scalar_one())
        return cls(me, seconds=seconds, shards=shards, budget=budget, learns=learns)

    def sync(
        self, engine: Engine, own_state: WorkerState, share: BudgetShare, interval: float
    ) -> CrawlTotals:
        """Renew the lease, compare notes, take what is free; see ``docs/workers.md``.

        One statement, unless something is to be changed besides this worker's row.

        Parameters
        ----------
        interval : seconds between two calls

        Raises
        ------
        LeaseLostError
            Others have taken over.
        """
        idle_at = own_state.idle_at if own_state.shards == len(self._owned) else None
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            notes = connection.execute(_COMPARE, self._told(own_state, idle_at)).all()
        now = notes[0]
        if now.outstanding is None:
            raise LeaseLostError
        alive = {each.worker: each for each in notes}
        self._owned = frozenset(now.mine)
        held, asked = len(now.mine), time.monotonic()
        granted = int(now.outstanding + now.recorded)
        taken: list[int] = []
        more, trains = 0, self._learns and now.trainer == self.me
        fair = math.ceil(self.shards / len(alive))
        left = int(share.left) if self._budget else 0
        wanted = self._wanted(now.granted, len(alive), own_state, left)
        self._shares.look({number: each.made for number, each in alive.items()})
        follows = self._learns and (
            now.trainer not in alive or self._shares.should_follow(self.me, now.trainer)
        )
        if now.late or (now.free and held < fair) or wanted or follows:
            with engine.begin() as connection:
                self._hold(connection)
                if now.late:
                    self.bury(connection)
                if now.free and held < fair:
                    taken = self._take(connection, fair - held)
                if wanted:
                    more = self._share_budget(connection, wanted, share)
                if follows:
                    trains = self._follow(connection, now.trainer)
        offers = {
            number: np.frombuffer(each.offers, "<f8")
            for number, each in alive.items()
            if number != self.me and each.fresh
        }
        pace = {number: each.pace for number, each in alive.items()}
        limit = -math.inf
        if len(alive) > 1:
            limit = threshold(own_state.offers, offers.values(), sum(pace.values()), interval)
        offers[self.me] = own_state.offers
        if not now.paused:  # nobody makes any fetches then that could be shared out better
            self._balance.compare(asked, limit, offers, pace, own_state.of_shards)
        self._balance.took(taken)
        spare = None
        if held <= fair and not (own_state.on_the_way or taken or now.paused):
            spare = self._balance.to_give(asked, self._owned, free=bool(now.free))
        told = {number: each.idle_at for number, each in alive.items()}
        told[self.me] = _coded(idle_at, defers=own_state.defers)
        idle = set(told.values()) <= {now.posted}
        all_defer = set(told.values()) <= {now.posted, _coded(now.posted, defers=True)}
        over = not now.free and idle
        return CrawlTotals(
            now.fetched,
            now.posted,
            now.relevance,
            now.last_relevant,
            nearly(limit),
            taken,
            max(0, held - fair),
            trains,
            over=over,
            reached=not over or _has_reached(engine),
            granted=granted + more,
            paused=now.paused,
            stop=now.stop,
            model=now.model,
            spare=spare,
            landed=self._landed(own_state.on_the_way, alive, now.posted),
            seen=own_state,
            good=own_state.here(nearly(limit)),
            all_defer=not now.free and all_defer,
            leads=self.me == min(alive),
        )

    def _landed(
        self, on_the_way: frozenset[int], alive: Mapping[int, Row[Any]], posted: int
    ) -> frozenset[int]:
        """Return the shards whose new owners have taken in what there was when they got them."""
        now = time.monotonic()
        self._followed = {s: each for s, each in self._followed.items() if s in on_the_way}
        for number, each in alive.items():
            for given in each.got or ():
                if given not in self._followed or self._followed[given][0] != number:
                    self._followed[given] = number, posted, now
        return frozenset(
            given
            for given, (owner, there, since) in self._followed.items()
            if owner != self.me
            and owner in alive
            # what it has taken in came later; or nothing comes
            and ((alive[owner].taken_in or -1) > there or now - since > _READ)
        )

    def release(self, connection: Connection, shards: list[int]) -> None:
        """Give shards away."""
        self._released |= dict.fromkeys(shards, time.monotonic())
        mine = shard.c.owner == self.me
        connection.execute(
            sa.update(shard).where(mine, shard.c.number.in_(shards)).values(owner=None)
        )
        connection.execute(
            sa.update(lease)
            .where(lease.c.worker == self.me, lease.c.shard.in_(shards))
            .where(lease.c.released_at.is_(None))
            .values(released_at=_NOW)
        )

    def leave(self, connection: Connection) -> None:
        """Give everything back, and be gone."""
        self._part_with(connection, [self.me], LEFT)

    def bury(self, connection: Connection) -> None:
        """Take everything from workers whose lease has run out.

        Not right after a restart of the server, when nobody could renew any.
        """
        found = connection.execute(
            sa.select(worker.c.id)
            .where(worker.c.state == ALIVE, worker.c.expires < _NOW)
            .where(sa.func.pg_postmaster_start_time() < _NOW - _span(self.seconds))
            .with_for_update(skip_locked=True)
        )
        dead = [row.id for row in found]
        if dead:
            self._part_with(connection, dead, LOST)

    def _told(self, own_state: WorkerState, idle_at: int | None) -> dict[str, Any]:
        return {
            **own_state._asdict(),
            "me": self.me,
            "seconds": self.seconds,
            "fresh": _FRESH,
            "offers": own_state.offers.astype("<f8").tobytes(),
            # whoever has got shards that it has not looked at yet is not idle
            "idle_at": _coded(idle_at, defers=own_state.defers),
            "on_the_way": list(own_state.on_the_way),
        }

    def _hold(self, connection: Connection) -> None:
        """Lock the own row: nobody can take this worker for lost until the commit."""
        mine = sa.select(worker.c.id).where(worker.c.id == self.me, worker.c.state == ALIVE)
        if connection.execute(mine.with_for_update()).first() is None:
            raise LeaseLostError

    def _part_with(self, connection: Connection, ids: list[int], state: str) -> None:
        left = connection.execute(
            sa.select(sa.func.coalesce(sa.func.sum(worker.c.outstanding), 0)).where(
                worker.c.id.in_(ids)
            )
        ).scalar_one()
        connection.execute(
            sa.update(worker).where(worker.c.id.in_(ids)).values(state=state, outstanding=0)
        )
        connection.execute(sa.update(shard).where(shard.c.owner.in_(ids)).values(owner=None))
        connection.execute(
            sa.update(lease)
            .where(lease.c.worker.in_(ids), lease.c.released_at.is_(None))
            .values(released_at=_NOW)
        )
        connection.execute(sa.update(crawl).values(granted=crawl.c.granted - left))

    def _take(self, connection: Connection, most: int) -> list[int]:
        """Take free shards, but not what others should have; return their numbers."""
        late = time.monotonic() - _OTHERS
        self._released = {each: at for each, at in self._released.items() if at > late}
        chosen = (
            sa.select(shard.c.number)
            .where(shard.c.owner.is_(None), shard.c.number.not_in(list(self._released)))
            .order_by(shard.c.number)
            .limit(most)
            .with_for_update(skip_locked=True)
            .cte()
        )
        taken = connection.execute(
            sa.update(shard)
            .where(shard.c.number.in_(sa.select(chosen.c.number)))
            .values(owner=self.me)
            .returning(shard.c.number)
        )
        numbers = sorted(taken.scalars())
        self._owned |= frozenset(numbers)
        if numbers:
            connection.execute(
                sa.insert(lease).values(taken_at=_NOW),
                [{"shard": number, "worker": self.me} for number in numbers],
            )
            connection.execute(
                sa.update(worker).where(worker.c.id == self.me).values(idle_at=None)
            )
        return numbers

    def _wanted(self, granted: int, alive: int, own_state: WorkerState, left: int) -> int:
        """Return how many more fetches to ask for; below 0: to give back.

        Given back is what cannot be used while others have none.
        """
        if not self._budget:
            return 0
        if granted < self._budget:
            if own_state.waits and left > 0:
                return 0
            return lot(self._budget, granted, alive, own_state.pace, left)
        # the last fetches go round until the worker with the best links has them
        return -left if own_state.waits else 0

    def _share_budget(self, connection: Connection, wanted: int, share: BudgetShare) -> int:
        """Be granted more fetches, or give some back.

        Returns
        -------
        How many more were granted
        """
        if wanted > 0:
            locked = connection.execute(sa.select(crawl.c.granted).with_for_update())
            granted: int = locked.scalar_one()
            more = min(wanted, self._budget - granted)
        else:
            more = -share.withdraw(-wanted)
        if more:
            outstanding = worker.c.outstanding + more
            mine = sa.update(worker).where(worker.c.id == self.me)
            connection.execute(mine.values(outstanding=outstanding))
            connection.execute(sa.update(crawl).values(granted=crawl.c.granted + more))
        return more

    def _follow(self, connection: Connection, trainer: int | None) -> bool:
        """Be the one that trains in place of another, unless a third was faster."""
        became = connection.execute(
            sa.update(crawl)
            .where(crawl.c.trainer.is_not_distinct_from(trainer))
            .values(trainer=self.me)
        )
        return bool(became.rowcount)


def _has_reached(engine: Engine) -> bool:
    """Tell whether any page of the crawl could be had."""
    with engine.connect() as connection:
        return bool(connection.execute(_REACHED).scalar_one())


def _coded(idle_at: int | None, *, defers: bool) -> int | None:
    """Return what the column ``idle_at`` has: below 0 for a worker that has deferred URLs."""
    return -1 - idle_at if defers and idle_at is not None else idle_at


def _span(seconds: float) -> sa.ColumnElement[Any]:
    return sa.func.make_interval(0, 0, 0, 0, 0, 0, seconds)
