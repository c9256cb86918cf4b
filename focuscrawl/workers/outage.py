"""Whether the store answers: said when it stops, counted, and said when it does again."""

from __future__ import annotations

import logging
import threading
import time

logger = logging.getLogger(__name__)


class Outage:
    """What the threads of a worker know of a store that is away; one line however long it lasts.

    Attributes
    ----------
    on : the store did not answer when it was last asked
    """

    def __init__(self) -> None:
        self.on = False
        self._lock = threading.Lock()
        self._since = 0.0
        self._failed = 0

    def failed(self, said: str) -> None:
        """Take in that an attempt failed; `said` is why."""
        with self._lock:
            self._failed += 1
            if self.on:
                return
            self.on, self._since = True, time.monotonic()
        logger.warning("the store is away, trying again until it is back: %s", said)

    def over(self) -> None:
        """Take in that the store answered."""
        if not self.on:
            return
        with self._lock:
            seconds, failed = time.monotonic() - self._since, self._failed
            self.on, self._failed = False, 0
        logger.warning("the store is back after %.0f s; attempts that failed: %d", seconds, failed)
