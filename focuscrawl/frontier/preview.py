"""What the frontier would give out next, without taking it."""

from __future__ import annotations

import heapq
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from focuscrawl.frontier.frontier import Frontier


def outlook(frontier: Frontier, most: int) -> tuple[list[float], list[int]]:
    """Return scores and hosts of the next `most` URLs, best first.

    As if every request were answered at once; with a delay, a host is good for one URL. Only
    hosts that have one of these URLs are looked at, and of these no more links than are among
    them and the one after, however many there are.
    """
    each = 1 if frontier.delay else most
    best: list[tuple[float, int]] = []  # a heap, the worst on top
    for offered, host in frontier.offers():
        if len(best) == most and offered <= best[0][0]:
            break
        for score in islice(frontier.scores_of(host), each):
            if len(best) < most:
                heapq.heappush(best, (score, host))
            elif score > best[0][0]:
                heapq.heapreplace(best, (score, host))
            else:
                break
    best.sort(key=lambda entry: -entry[0])
    return [score for score, _ in best], [host for _, host in best]
