"""The thread of a worker that talks to the others through the database."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.sharing.membership import LeaseLostError, Membership, Standing, State
from focuscrawl.sharing.writer import TROUBLE, first_line, passes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Engine

    from focuscrawl.sharing.allowance import Allowance
    from focuscrawl.sharing.deliveries import Delivery, Reader

logger = logging.getLogger(__name__)

INTERVAL = 0.1  # seconds between two comparisons
_AGAIN = 0.5  # seconds until the next attempt where the server is away


class Courier:
    """Keeps the lease, brings what is new, and takes shards away.

    What it brings waits in `deliveries` until the crawl takes it in, from its own thread.

    Parameters
    ----------
    engine : of the crawl's database
    membership, reader, allowance : of this worker
    lease : seconds it holds without a renewal
    patience : seconds for which a server may be away

    Attributes
    ----------
    state : of the crawl, as last seen
    deliveries : to be taken in
    standing : set by the crawl for the others to see
    model : version and state of a model later than ``standing.model_version``, None without
    failure : what ended this thread
    """

    def __init__(
        self,
        engine: Engine,
        membership: Membership,
        reader: Reader,
        allowance: Allowance,
        *,
        lease: float,
        patience: float,
    ) -> None:
        self._engine = engine
        self._membership = membership
        self._reader = reader
        self._allowance = allowance
        self._lease = lease
        self._patience = patience
        self._held: list[int] = []
        self._taken: list[int] = []  # in the database, and not read yet
        self._releasing: list[int] = []
        self._to_release: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._renewed = time.monotonic()
        self.standing = Standing(np.zeros(0), 0.0, 0, None, 0)
        self.deliveries: queue.SimpleQueue[Delivery] = queue.SimpleQueue()
        self.model: tuple[int, bytes] | None = None
        self.failure: BaseException | None = None
        self.state: State = self._compare()
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)
        self._thread.start()

    @property
    def holds_surely(self) -> bool:
        """False once so long no renewal came through that a request may outlast the lease."""
        return time.monotonic() - self._renewed < self._lease / 2.0

    @property
    def held(self) -> list[int]:
        """Shards that belong to this worker in the database."""
        return list(self._held)

    def release(self, shards: Iterable[int]) -> None:
        """Have shards given away: nothing of them is under way, and everything is written."""
        self._to_release.put(list(shards))

    def close(self) -> None:
        """Give everything back and end; when the writer has ended."""
        self._closing.set()
        self._thread.join()
        if self.failure is None:
            try:
                with self._engine.begin() as connection:
                    self._membership.leave(connection)
            except TROUBLE as error:
                logger.warning("the lease is left to run out: %s", first_line(error))

    def _run(self) -> None:
        while not self._closing.wait(INTERVAL):
            try:
                self.state = self._compare()
            except LeaseLostError as error:
                self.failure = error
                return
            except TROUBLE as error:
                away = time.monotonic() - self._renewed
                if not passes(error) or away > self._patience:
                    self.failure = error
                    return
                self._closing.wait(_AGAIN)
            except Exception as error:
                logger.exception("the worker cannot go on")
                self.failure = error
                return

    def _compare(self) -> State:
        """Do all there is to do once."""
        asked = time.monotonic()
        while not self._to_release.empty():
            self._releasing += self._to_release.get()
        with self._engine.begin() as connection:
            if self._releasing:
                self._membership.release(connection, self._releasing)
            state = self._membership.sync(
                connection, self.standing, self._allowance, max(INTERVAL, asked - self._renewed)
            )
        self._allowance.set(state.granted)
        self._held = [shard for shard in self._held if shard not in self._releasing]
        self._reader.released(self._releasing)
        self._releasing = []
        self._taken += state.taken
        self._renewed = asked
        with self._engine.connect() as connection:
            delivery = self._reader.read(connection, self._held, self._taken, state.posted)
            self._held += self._taken
            self._taken = []
            self.deliveries.put(delivery)
            known = self.standing.model_version
            if self.model is None or self.model[0] <= known:
                self.model = self._reader.model(connection, known)
        return state
