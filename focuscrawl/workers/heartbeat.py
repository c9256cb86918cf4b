"""The threads of a worker that talk to the others through the database."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.store.refusals import first_line
from focuscrawl.workers.worker_state import CrawlTotals, LeaseLostError, WorkerState
from focuscrawl.workers.writer import TROUBLE, passes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sqlalchemy import Engine

    from focuscrawl.workers.budget import BudgetShare
    from focuscrawl.workers.inbox import Delivery, InboxReader, PublishedModel
    from focuscrawl.workers.membership import Membership

logger = logging.getLogger(__name__)

INTERVAL = 0.1  # seconds between two comparisons
_HURRY = 0.02  # where the crawl waits for others
_AGAIN = 0.5  # seconds until the next attempt where the server is away


class Heartbeat:
    """Keeps the lease, and brings what is new: in two threads, as reading may take long.

    What it brings waits in `deliveries` until the crawl takes it in, in its own thread.

    Parameters
    ----------
    engine : of the crawl's database
    membership, reader, share : of this worker
    lease : seconds it holds without a renewal
    patience : seconds for which a server may be away

    Attributes
    ----------
    state : of the crawl, as last seen
    deliveries : to be taken in
    own_state : set by the crawl for the others to see
    model : one later than ``own_state.model_version``, None without
    failure : what ended a thread
    """

    def __init__(
        self,
        engine: Engine,
        membership: Membership,
        reader: InboxReader,
        share: BudgetShare,
        *,
        lease: float,
        patience: float,
    ) -> None:
        self._engine = engine
        # each question by itself: numbers tell how far to read
        self._reading = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._membership = membership
        self._reader = reader
        self._share = share
        self._lease = lease
        self._patience = patience
        self._held: list[int] = []  # of the reading thread
        self._released: list[int] = []
        self._to_release: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._given = self._gone = self._heard_gone = 0  # shards: put in, written, in the state
        self._changes: queue.SimpleQueue[_Change] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._hurry = threading.Event()
        self._renewed = time.monotonic()
        self.own_state = WorkerState(np.zeros(0), 0.0, 0, None, 0, 0)
        self.deliveries: queue.SimpleQueue[Delivery] = queue.SimpleQueue()
        self.model: PublishedModel | None = None
        self.failure: BaseException | None = None
        self.state: CrawlTotals = self._compare()
        self._threads = [
            threading.Thread(target=self._run, args=(step,), name=f"heartbeat-{name}", daemon=True)
            for name, step in (("lease", self._keep), ("reader", self._read))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def holds_surely(self) -> bool:
        """False once so long no renewal came through that a request may outlast the lease."""
        return time.monotonic() - self._renewed < self._lease / 2.0

    @property
    def lease_left(self) -> float:
        """Seconds until the lease runs out, unless it is renewed; as seen from here."""
        return self._renewed + self._lease - time.monotonic()

    def release(self, shards: Iterable[int]) -> None:
        """Have shards given away: nothing of them is under way, and everything is written."""
        for shard in shards:
            self._given += 1
            self._to_release.put(shard)

    @property
    def releasing(self) -> int:
        """How many shards were released of which `state` does not know yet."""
        return self._given - self._heard_gone

    def hurry(self) -> None:
        """Compare sooner: the crawl waits for others."""
        self._hurry.set()

    def close(self) -> None:
        """Give everything back and end; when the writer has ended."""
        self._closing.set()
        self._hurry.set()
        for thread in self._threads:
            thread.join()
        if self.failure is None:
            try:
                with self._engine.begin() as connection:
                    self._membership.leave(connection)
            except TROUBLE as error:
                logger.warning("the lease is left to run out: %s", first_line(error))

    def _run(self, step: Callable[[], None]) -> None:
        away_since = None
        while not self._closing.is_set() and self.failure is None:
            try:
                step()
                away_since = None
            except TROUBLE as error:
                away_since = away_since or time.monotonic()
                if not passes(error) or time.monotonic() - away_since > self._patience:
                    self.failure = error
                self._closing.wait(_AGAIN)
            except LeaseLostError as error:
                self.failure = error
            except Exception as error:
                logger.exception("the worker cannot go on")
                self.failure = error

    def _keep(self) -> None:
        if self._closing.wait(_HURRY):
            return
        self._hurry.wait(INTERVAL - _HURRY)
        self._hurry.clear()
        self.state = self._compare()
        self._heard_gone = self._gone

    def _compare(self) -> CrawlTotals:
        """Renew the lease, and compare notes with the others."""
        asked = time.monotonic()
        while not self._to_release.empty():
            self._released.append(self._to_release.get())
        if self._released:
            with self._engine.begin() as connection:
                self._membership.release(connection, self._released)
        interval = max(INTERVAL, asked - self._renewed)
        state = self._membership.sync(self._engine, self.own_state, self._share, interval)
        self._share.set(state.granted)
        self._renewed = asked
        self._changes.put(
            _Change(self._released, state.taken, state.posted, state.fetched, state.model)
        )
        self._gone += len(self._released)
        self._released = []
        return state

    def _read(self) -> None:
        """Read what is new on the shards that this worker has."""
        change = self._change()
        if change is None:
            return
        try:
            with self._reading.connect() as connection:
                delivery = self._reader.read(
                    connection, self._held, change.taken, change.posted, change.fetched
                )
        except BaseException:
            self._changes.put(change)
            raise
        self._held += change.taken
        self.deliveries.put(delivery)  # before anything else can fail: it is read only once
        latest, known = change.model or 0, self.own_state.model_version
        if latest > known and (self.model is None or self.model.version < latest):
            with self._reading.connect() as connection:
                self.model = self._reader.model(connection, known)

    def _change(self) -> _Change | None:
        """Return what changed since the last call, in one; wait for it, but not for long."""
        try:
            changes = [self._changes.get(timeout=INTERVAL)]
        except queue.Empty:
            return None
        while not self._changes.empty():
            changes.append(self._changes.get())
        taken: list[int] = []
        for change in changes:
            self._held = [shard for shard in self._held if shard not in change.released]
            self._reader.released(change.released)
            taken += change.taken
        latest = max((each.model for each in changes if each.model is not None), default=None)
        return _Change(
            [],
            taken,
            max(each.posted for each in changes),
            max(each.fetched for each in changes),
            latest,
        )


class _Change(NamedTuple):
    released: list[int]
    taken: list[int]
    posted: int
    fetched: int
    model: int | None
