"""What the frontier would give out next, without taking it."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Item = TypeVar("Item", bound="tuple[Any, ...]")


class Offers(Protocol):
    """What a preview reads of a frontier."""

    delay: float

    def offers(self) -> Iterator[tuple[float, int]]:
        """Iterate over the best score and the number of each host with room, best first."""
        ...

    def best_of(self, host: int, most: int) -> list[float]:
        """Return the best `most` scores in the queue of `host`, descending."""
        ...


def outlook(frontier: Offers, most: int) -> tuple[list[float], list[int]]:
    """Return scores and hosts of the next `most` URLs, best first.

    As if every request were answered at once; with a delay, a host is good for one URL. Only
    hosts that have one of these URLs are looked at, however many there are.
    """
    each = 1 if frontier.delay else most
    best: list[tuple[float, int]] = []  # a heap, the worst on top
    for offered, host in frontier.offers():
        if len(best) == most and offered <= best[0][0]:
            break
        for score in frontier.best_of(host, each):
            if len(best) < most:
                heapq.heappush(best, (score, host))
            elif score > best[0][0]:
                heapq.heapreplace(best, (score, host))
            else:
                break
    best.sort(key=lambda entry: -entry[0])
    return [score for score, _ in best], [host for _, host in best]


def in_order(heap: Sequence[Item]) -> Iterator[Item]:
    """Iterate over a heap from the least item on and leave it as it is: O(log k) for the k-th."""
    ahead = [(heap[0], 0)] if heap else []
    while ahead:
        item, node = heapq.heappop(ahead)
        yield item
        for child in (2 * node + 1, 2 * node + 2):
            if child < len(heap):
                heapq.heappush(ahead, (heap[child], child))
