"""The threads of a worker that talk to the others through the database."""

from __future__ import annotations

import logging
import queue
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

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
    from focuscrawl.workers.outage import Outage

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
    outage : told of it

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
        outage: Outage,
    ) -> None:
        self._engine = engine
        # each question by itself: numbers tell how far to read
        self._reading = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._membership = membership
        self._reader = reader
        self._share = share
        self._lease = lease
        self._patience = patience
        self.outage = outage
        self._held: list[int] = []  # of the reading thread
        self._releasing: set[int] = set()  # shards, until `state` is of a time without them
        # shards given away, and what is new; of these, the reading thread's own
        self._changes: queue.SimpleQueue[tuple[list[int], CrawlTotals]] = queue.SimpleQueue()
        self._to_read: list[tuple[list[int], CrawlTotals]] = []
        self._closing = threading.Event()
        self._hurry = threading.Event()
        self._renewed = time.monotonic()
        self.own_state = WorkerState(np.zeros(0), 0.0, 0, None, 0, 0)
        self.deliveries: queue.SimpleQueue[Delivery] = queue.SimpleQueue()
        self.model: PublishedModel | None = None
        self.failure: BaseException | None = None
        self.state: CrawlTotals
        self._compare()
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
        self._releasing.update(shards)

    @property
    def releasing(self) -> int:
        """How many shards were released of which `state` does not know yet."""
        return len(self._releasing)

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
                else:
                    self.outage.failed(first_line(error))
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
        self._compare()

    def _compare(self) -> None:
        """Renew the lease, and compare notes with the others."""
        asked, released = time.monotonic(), [*self._releasing]
        if released:
            with self._engine.begin() as connection:
                self._membership.release(connection, released)
        interval = max(INTERVAL, asked - self._renewed)
        state = self._membership.sync(self._engine, self.own_state, self._share, interval)
        self.outage.over()
        self._share.set(state.granted)
        self._renewed = asked
        self._changes.put((released, state))
        self.state = state
        self._releasing.difference_update(released)

    def _read(self) -> None:
        """Read what is new on the shards that this worker has; wait for it, but not for long."""
        with suppress(queue.Empty):
            self._to_read.append(self._changes.get(timeout=INTERVAL))
        while not self._changes.empty():
            self._to_read.append(self._changes.get())
        if not self._to_read:
            return
        for released, _ in self._to_read:
            self._held = [shard for shard in self._held if shard not in released]
            self._reader.released(released)
        taken = [shard for _, state in self._to_read for shard in state.taken]
        _, latest = self._to_read[-1]
        with self._reading.connect() as connection:
            delivery = self._reader.read(
                connection, self._held, taken, latest.posted, latest.fetched
            )
        self._to_read = []
        self._held += taken
        self.deliveries.put(delivery)  # before anything else can fail: it is read only once
        version, known = latest.model or 0, self.own_state.model_version
        if version > known and (self.model is None or self.model.version < version):
            with self._reading.connect() as connection:
                self.model = self._reader.model(connection, known)
