"""What comes next, without taking it."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from focuscrawl.frontier.hosts import Host


def outlook(
    available: Sequence[tuple[float, int, int]],
    hosts: Sequence[Host],
    keys: NDArray[np.float64],
    queued: NDArray[np.bool_],
    each: int,
) -> Iterator[tuple[float, int]]:
    """Iterate over keys and hosts of queued links, best first; changes nothing.

    The heap is walked from its top, and of a host with n links before the k-th only these are
    looked at: k links take O(k log k) however many hosts there are.

    Parameters
    ----------
    available : heap of key, URL and host of what hosts offer
    keys, queued : for every URL, its present key and whether it waits
    each : links that a host is good for
    """
    # an entry: the key, where it lies in the heap or -1, its host, what comes after it there
    nodes: list[tuple[float, int, int, list[float]]] = []
    seen: set[int] = set()

    def visit(node: int) -> None:
        if node < len(available):
            key, _, host = available[node]
            heapq.heappush(nodes, (key, node, host, []))

    visit(0)
    while nodes:
        key, node, host, after = heapq.heappop(nodes)
        if node >= 0:
            visit(2 * node + 1)
            visit(2 * node + 2)
            if hosts[host].offered != available[node][:2] or host in seen:
                continue
            seen.add(host)  # what it offers may be out of date: then something worse is first
            after = hosts[host].first(each, keys, queued)[::-1]
        else:
            yield key, host
        if after:
            heapq.heappush(nodes, (after.pop(), -1, host, after))
