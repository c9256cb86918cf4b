"""A worker among workers: its lease, its shards, its share of the budget, all in the database."""

from __future__ import annotations

import math
import os
import socket
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from focuscrawl.sharing.allowance import lot, threshold
from focuscrawl.sharing.standing import LeaseLostError, Standing, State
from focuscrawl.store.shared import ALIVE, LEFT, LOST, crawl, evidence, lease, shard, worker

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from focuscrawl.sharing.allowance import Allowance

_NOW = sa.func.clock_timestamp()
_FRESH = 2.0  # seconds after which offers are held for out of date


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
        self._owned = 0

    @staticmethod
    def join(connection: Connection, seconds: float, budget: int) -> int:
        """Add a worker; return its number."""
        row = {
            "name": f"{socket.gethostname()}:{os.getpid()}",
            "state": ALIVE,
            "joined_at": _NOW,
            "renewed_at": _NOW,
            "expires": _later(seconds),
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
        return int(made.scalar_one())

    def sync(
        self, connection: Connection, standing: Standing, allowance: Allowance, interval: float
    ) -> State:
        """Renew the lease, compare notes, take what is free; see ``docs/workers.md``.

        Parameters
        ----------
        interval : seconds between two calls

        Raises
        ------
        LeaseLostError
            Others have taken over.
        """
        granted, stop = self._renew(connection, standing)
        self.bury(connection)
        alive = connection.execute(
            sa.select(worker.c.id, worker.c.offers, worker.c.pace, worker.c.idle_at)
            .add_columns((worker.c.renewed_at > _NOW - _span(_FRESH)).label("fresh"))
            .where(worker.c.state == ALIVE)
        ).all()
        taken, surplus, unowned = self._share_shards(connection, len(alive))
        now = connection.execute(sa.select(crawl)).one()
        granted += self._share_budget(connection, now, len(alive), standing.pace, allowance)
        others = [
            np.frombuffer(each.offers, "<f8")
            for each in alive
            if each.id != self.me and each.fresh
        ]
        pace = sum(each.pace for each in alive)
        return State(
            now.fetched,
            now.posted,
            now.handed_in,
            now.relevance,
            now.last_relevant,
            threshold(standing.offers, others, pace, interval),
            taken,
            surplus,
            self._learns and self._trains(connection, now, alive),
            over=not unowned and all(each.idle_at == now.posted for each in alive),
            granted=granted,
            paused=now.paused,
            stop=stop,
        )

    def release(self, connection: Connection, shards: list[int]) -> None:
        """Give shards away."""
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

    def _renew(self, connection: Connection, standing: Standing) -> tuple[int, bool]:
        """Renew the lease.

        Returns
        -------
        How many fetches were ever granted to this worker; whether it is asked to stop
        """
        renewed = connection.execute(
            sa.update(worker)
            .where(worker.c.id == self.me, worker.c.state == ALIVE)
            .values(
                renewed_at=_NOW,
                expires=_later(self.seconds),
                offers=standing.offers.astype("<f8").tobytes(),
                pace=standing.pace,
                queued=standing.queued,
                # whoever has got shards that it has not looked at yet is not idle
                idle_at=standing.idle_at if standing.shards == self._owned else None,
                model_version=standing.model_version,
                taken_in=standing.taken_in,
                in_flight=standing.in_flight,
                paused=standing.paused,
            )
            .returning(worker.c.outstanding, worker.c.fetched, worker.c.stop)
        ).first()
        if renewed is None:
            raise LeaseLostError
        return int(renewed.outstanding + renewed.fetched), bool(renewed.stop)

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

    def _share_shards(self, connection: Connection, alive: int) -> tuple[list[int], int, int]:
        """Take free shards up to a fair share.

        Returns
        -------
        The shards taken; how many there are too many; how many nobody has
        """
        fair = math.ceil(self.shards / alive)
        owners = connection.execute(
            sa.select(shard.c.owner, sa.func.count()).group_by(shard.c.owner)
        )
        count: dict[int | None, int] = {row[0]: row[1] for row in owners}
        mine, free = count.get(self.me, 0), count.get(None, 0)
        self._owned = mine
        if not free or mine >= fair:
            return [], max(0, mine - fair), free
        chosen = (
            sa.select(shard.c.number)
            .where(shard.c.owner.is_(None))
            .order_by(shard.c.number)
            .limit(fair - mine)
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
        self._owned += len(numbers)
        if numbers:
            connection.execute(
                sa.insert(lease).values(taken_at=_NOW),
                [{"shard": number, "worker": self.me} for number in numbers],
            )
        return numbers, 0, free

    def _share_budget(
        self,
        connection: Connection,
        now: Row[Any],
        alive: int,
        pace: float,
        allowance: Allowance,
    ) -> int:
        """Ask for more fetches, or give back what cannot be used while others have none.

        Returns
        -------
        How many more were granted
        """
        if not self._budget:
            return 0
        more, left = 0, int(allowance.left)
        wanted = lot(self._budget, now.granted, alive, pace, left)
        if now.granted < self._budget and wanted:
            granted = connection.execute(sa.select(crawl.c.granted).with_for_update()).scalar_one()
            more = min(wanted, self._budget - granted)
        elif now.granted >= self._budget and left > 0:
            # the last fetches go round until the worker with the best links has them
            more = -allowance.withdraw(max(1, left // 2))
        if more:
            self._grant(connection, more)
        return more

    def _grant(self, connection: Connection, n: int) -> None:
        """Grant this worker `n` fetches, or take them back where `n` is below 0."""
        connection.execute(
            sa.update(worker)
            .where(worker.c.id == self.me)
            .values(outstanding=worker.c.outstanding + n)
        )
        connection.execute(sa.update(crawl).values(granted=crawl.c.granted + n))

    def _trains(self, connection: Connection, now: Row[Any], alive: Any) -> bool:
        """Be the one that trains if nobody is."""
        if now.trainer in {each.id for each in alive}:
            return bool(now.trainer == self.me)
        became = connection.execute(
            sa.update(crawl)
            .where(crawl.c.trainer.is_not_distinct_from(now.trainer))
            .values(trainer=self.me)
        )
        return bool(became.rowcount)


def unread(held: list[int], after: int, upto: int, me: int) -> sa.Select[Any]:
    """Select the evidence on shards that came after one transaction, up to another."""
    e = evidence.c
    return (
        sa.select(evidence)
        .where(e.shard.in_(held), e.id > after, e.id <= upto, e.applied_by != me)
        .order_by(e.id)
    )


def _later(seconds: float) -> sa.ColumnElement[Any]:
    return _NOW + _span(seconds)


def _span(seconds: float) -> sa.ColumnElement[Any]:
    return sa.func.make_interval(0, 0, 0, 0, 0, 0, seconds)
