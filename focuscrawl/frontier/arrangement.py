"""All that waits, sorted as a whole: in any thread, and for many URLs cheaper than one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.frontier.hosts import QUEUED

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray


class Arrangement(NamedTuple):
    """All that waits, sorted by host, key and URL.

    Attributes
    ----------
    keys : float64 (n,) of URL numbers below n, scores negated
    state : int8 (n,), where each was then, see `focuscrawl.frontier.hosts`
    runs : number, keys and URLs of each host with URLs in its queue, best first
    """

    keys: NDArray[np.float64]
    state: NDArray[np.int8]
    runs: list[tuple[int, NDArray[np.float64], NDArray[np.int64]]]

    @classmethod
    def of(
        cls,
        keys: NDArray[np.float64],
        state: NDArray[np.int8],
        host_of: NDArray[np.int32],
        urls: NDArray[np.int64],
        scores: NDArray[np.float64],
    ) -> Self:
        """Sort what is in the queues, by new scores of some.

        Parameters
        ----------
        keys, state : (n,), of URL numbers below n; they become the arrangement's own
        host_of : of as many numbers, or more
        urls, scores : what moves, and where to; numbers from n on, which came later, and what
            has the score inf are passed over
        """
        there = urls < len(state)
        urls, scores = urls[there], scores[there]
        moved = keys[urls] != -np.inf
        keys[urls[moved]] = -scores[moved]
        order = np.flatnonzero(state == QUEUED)
        order = order[np.lexsort((order, keys[order], host_of[order]))]
        sorted_keys, sorted_hosts = keys[order], host_of[order]
        bounds = np.flatnonzero(np.diff(sorted_hosts, prepend=-1))
        hosts, starts = sorted_hosts[bounds].tolist(), bounds.tolist()
        runs = [
            (host, sorted_keys[start:end], order[start:end])
            for host, start, end in zip(hosts, starts, [*starts[1:], len(order)], strict=False)
        ]
        return cls(keys, state, runs)
