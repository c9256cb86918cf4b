"""Who may fetch, and how much: an exact budget, and one order over all frontiers."""

from __future__ import annotations

import math
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

SLACK = 1.5  # times what all can fetch until they compare again, so that nobody runs dry
_LEAST = 1  # URLs a worker that are within reach, however slow all are
_NEARLY = 0.05  # part of a score that is not worth waiting for
_SECONDS = 2.0  # for which a lot is enough
_LOTS = 16, 256  # fetches that are granted at once, at least and at most
_UNTIL_ASKED = 0.2  # seconds that a lot is enough for even at the end of the budget


class BudgetShare:
    """Fetches a worker may begin; both its threads use it.

    Parameters
    ----------
    limited : False: there is no budget, everything is allowed
    """

    def __init__(self, *, limited: bool) -> None:
        self.limited = limited
        self._granted = 0
        self._used = 0
        self._lock = Lock()

    @property
    def left(self) -> float:
        """Fetches that may be begun now."""
        with self._lock:
            return self._granted - self._used if self.limited else math.inf

    def take(self) -> None:
        """Begin one."""
        with self._lock:
            self._used += 1

    def put_back(self) -> None:
        """Say that one that was begun does not count: it came to nothing, or comes again."""
        with self._lock:
            self._used -= 1

    def set(self, granted: int) -> None:
        """Say how many were ever granted, by the database."""
        with self._lock:
            self._granted = granted

    def withdraw(self, most: int) -> int:
        """Forbid what was granted and not begun, at most so much; return how much that is."""
        with self._lock:
            n = max(0, min(most, self._granted - self._used))
            self._granted -= n
            return n


def lot(budget: int, granted: int, workers: int, pace: float, left: float) -> int:
    """Return how many fetches a worker should ask for; 0 as long as it has half of that.

    Enough for two seconds, less when the budget comes to its end, so that nobody sits on fetches
    which others could make; but so many that nobody waits for more.

    Parameters
    ----------
    granted : of all workers so far
    pace : fetches a second of this worker
    left : fetches it may begin already
    """
    rest = budget - granted
    fair = max(math.ceil(rest / (2 * max(workers, 1))), math.ceil(_UNTIL_ASKED * pace))
    wanted = min(max(math.ceil(_SECONDS * pace), _LOTS[0]), _LOTS[1], fair, rest)
    return max(0, int(wanted - left)) if 2 * left <= wanted else 0


def threshold(
    mine: NDArray[np.float64], others: Iterable[NDArray[np.float64]], pace: float, interval: float
) -> float:
    """Return the score that a link must have to be fetched now.

    All workers together can fetch so many until they next compare their offers; a link that
    would not be among half as many again of the best ones, wherever they are, waits.

    Parameters
    ----------
    mine, others : scores of the best links of each worker, descending
    pace : fetches a second of all workers
    interval : seconds until they compare again
    """
    offers = [mine, *others]
    reach = max(_LEAST * len(offers), math.ceil(SLACK * pace * interval))
    together = np.concatenate(offers)
    if len(together) <= reach:
        return -math.inf
    return float(np.partition(together, len(together) - reach)[len(together) - reach])


def nearly(limit: float) -> float:
    """Return the score from which on a link is fetched rather than that a worker stands still.

    Parameters
    ----------
    limit : see `threshold`
    """
    return limit - _NEARLY * abs(limit) if math.isfinite(limit) else limit
