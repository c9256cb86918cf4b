"""Which hosts another worker should have: good links are to be where there is time for them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

_WINDOW = 2.0  # seconds that a share is a mean of, the latest counting most
_POOR, _RICH = -0.15, 0.1  # shares of the good links beyond those of the work
_MOST = 2.0 / 3.0  # of what is between the two; more would only make the other one the rich one
_WAIT, _LONGEST = 3.0, 96.0  # seconds between two exchanges


class ShardBalance:
    """Finds shards to exchange, one for one, between a worker that waits and one that is busy.

    Each worker has as many shards as any other, but not the same share of the links that are good
    enough at the time. Who has too few for the work it could do frees its poorest shard, and who
    has the most answers with a better one; each takes what the other gave. All workers see the
    same numbers, so that they need not ask each other.

    Parameters
    ----------
    me : number of the worker
    shards : of the crawl
    """

    def __init__(self, me: int, shards: int) -> None:
        self._me = me
        self._beyond: dict[int, float] = {}
        self._own = np.zeros(shards)  # share of the good links, by shard
        self._at = -math.inf
        self._wait = _WAIT
        self._not_before = -math.inf
        self._given: int | None = None

    def compare(
        self,
        now: float,
        limit: float,
        offers: Mapping[int, NDArray[np.float64]],
        pace: Mapping[int, float],
        shards: NDArray[np.int64],
    ) -> None:
        """Take in how workers stand.

        Parameters
        ----------
        now : seconds on any steady clock
        limit : score that a link must have to be good enough
        offers : scores of the best links, by worker
        pace : fetches a second that each could make; 0 of who has made none yet, which counts as
            able as the others are on average
        shards : int64, of each of this worker's own offers
        """
        share = min(1.0, (now - self._at) / _WINDOW)
        self._at = now
        counts = {worker: int((scores >= limit).sum()) for worker, scores in offers.items()}
        known = [pace[worker] for worker in offers if pace[worker] > 0.0]
        usual = sum(known) / max(len(known), 1)
        paces = {worker: pace[worker] or usual for worker in offers}
        total, able = max(sum(counts.values()), 1), sum(paces.values())
        scarce = limit > -math.inf and able > 0.0
        self._beyond = {
            worker: (1.0 - share) * self._beyond.get(worker, 0.0)
            + (share * (count / total - paces[worker] / able) if scarce else 0.0)
            for worker, count in counts.items()
        }
        good = shards[offers[self._me] >= limit]
        self._own += share * (np.bincount(good, minlength=len(self._own)) / total - self._own)

    def to_give(self, now: float, held: Collection[int], *, free: bool) -> int | None:
        """Return a shard that another worker should have; None: none, or not yet.

        Parameters
        ----------
        held : shards of this worker
        free : some have no owner: another worker may have made an offer
        """
        others = [each for worker, each in self._beyond.items() if worker != self._me]
        if not others or len(held) < 2 or now < self._not_before:
            return None
        mine = self._beyond[self._me]
        if not free and mine < _POOR and max(others) > _RICH:
            found = min(held, key=lambda shard: self._own[shard])
        elif free and mine > _RICH and mine >= max(others) and min(others) < _POOR:
            apart = mine - min(others)
            light = [shard for shard in held if 0.0 < self._own[shard] < _MOST * apart]
            if not light:
                return None
            found = min(light, key=lambda shard: abs(self._own[shard] - apart / 2.0))
        else:
            return None
        self._not_before, self._given = now + self._wait, found
        return found

    def took(self, taken: Collection[int]) -> None:
        """Take in which free shards were taken: whoever gets back its own tries less often."""
        if self._given is None or not taken:
            return
        self._wait = min(2.0 * self._wait, _LONGEST) if self._given in taken else _WAIT
        self._given = None
