"""What a worker tells the others of itself, and what it hears of the crawl."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_NONE = np.zeros(0, np.int64)


class LeaseLostError(Exception):
    """The lease of this worker has run out, and others have taken over what it had."""

    stop_reason = "lease_lost"

    def __init__(self) -> None:
        super().__init__("the lease ran out, and other workers have its hosts: start it again")


class WorkerState(NamedTuple):
    """How a worker stands, for the others.

    Attributes
    ----------
    offers : float64 (n,), its best scores, descending
    pace : fetches a second, of late, that it makes or could make; see `Throughput`
    queued : URLs that wait
    idle_at : it has nothing to do, having seen all evidence up to this; None: it has
    defers : what it has waits for limits to be raised; this does not count as something to do
    model_version : of the model it scores with
    shards : how many it knew to be its own
    taken_in : evidence up to this has been taken in; None: nothing yet
    in_flight : requests under way
    paused : it fetches nothing, as a person wants
    waits : it has no link that it may fetch now
    of_shards : int64 (n,), the shard of each offer
    on_the_way : shards given away whose links are among the offers
    begun : fetches begun here so far
    """

    offers: np.ndarray[tuple[int], np.dtype[np.float64]]
    pace: float
    queued: int
    idle_at: int | None
    model_version: int
    shards: int
    taken_in: int | None = None
    in_flight: int = 0
    paused: bool = False
    waits: bool = False
    of_shards: np.ndarray[tuple[int], np.dtype[np.int64]] = _NONE
    on_the_way: frozenset[int] = frozenset()
    begun: int = 0
    defers: bool = False

    def here(self, limit: float) -> int:
        """Return how many links that are offered are not on the way, and have at least a score."""
        here = ~np.isin(self.of_shards, list(self.on_the_way))
        return int((here & (self.offers >= limit)).sum())


class CrawlTotals(NamedTuple):
    """How the crawl stands.

    Attributes
    ----------
    fetched, posted, relevance, last_relevant : as in the table ``crawl``
    threshold : score that a link must have to be fetched now
    taken : shards that this worker has got
    surplus : how many shards others should have instead
    trains : whether this worker is the one that trains
    over : every worker is idle
    reached : whether any page could be had; looked up when it is over
    granted : fetches ever granted to this worker; valid once the transaction is committed
    paused, stop : what a person wants of all workers, and of this one
    model : version of the latest; None: there is none yet
    spare : a shard that another worker should have; None: none
    landed : of the shards on the way, those that their new owners have read
    seen : how this worker stood when all this was found
    good : of its links, how many could be fetched then
    all_defer : no worker has anything to do but what waits for limits to be raised
    leads : of the workers that are alive, this one was here first
    """

    fetched: int
    posted: int
    relevance: float
    last_relevant: int
    threshold: float
    taken: list[int]
    surplus: int
    trains: bool
    over: bool
    reached: bool
    granted: int
    paused: bool
    stop: bool
    model: int | None
    spare: int | None
    landed: frozenset[int]
    seen: WorkerState
    good: int
    all_defer: bool
    leads: bool
