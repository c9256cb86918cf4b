"""Random numbers that are a function of a key, the same in every process and on every machine.

SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) is counter-based: the n-th number is a hash of
key + n. Only integer operations and exact float products are used, no libm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

T = TypeVar("T")

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_BLOCK = 256  # numbers computed at once; a page needs 200 to 1,000
_COUNTERS: NDArray[np.uint64] = np.arange(1, _BLOCK + 1, dtype=np.uint64) * np.uint64(_GOLDEN)


def mix(*parts: int) -> int:
    """Hash integers to one of 64 bits."""
    state = 0
    for part in parts:
        state = ((state ^ part) + _GOLDEN) & _MASK
        state = ((state ^ (state >> 30)) * _FIRST) & _MASK
        state = ((state ^ (state >> 27)) * _SECOND) & _MASK
        state ^= state >> 31
    return state


def fraction(*parts: int) -> float:
    """Hash integers to a number in [0, 1)."""
    return (mix(*parts) >> 11) * 2.0**-53


def _units(key: int) -> Iterator[float]:
    counters = _COUNTERS + np.uint64(key)
    while True:
        state = counters
        state = (state ^ (state >> np.uint64(30))) * np.uint64(_FIRST)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(_SECOND)
        state ^= state >> np.uint64(31)
        yield from ((state >> np.uint64(11)) * 2.0**-53).tolist()
        counters = counters + _COUNTERS[-1]


class Draws:
    """A stream of random numbers that belongs to `key`."""

    def __init__(self, key: int) -> None:
        #: draws the next number, uniform in [0, 1)
        self.unit = _units(key).__next__

    def chance(self, probability: float) -> bool:
        """Draw True with `probability`."""
        return self.unit() < probability

    def between(self, low: int, high: int) -> int:
        """Draw an integer, low <= n <= high."""
        return low + int(self.unit() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        """Draw one of `items`, all alike."""
        return items[int(self.unit() * len(items))]

    def rank(self, n: int) -> int:
        """Draw 0 <= rank < n, low ranks more often: density falls with the square root."""
        return int(self.unit() * self.unit() * n)


class Digits:
    """A few small draws out of one 64-bit hash: cheap where a title is all that is wanted."""

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def pick(self, items: Sequence[T]) -> T:
        """Draw one of `items`, all alike."""
        self._bits, digit = divmod(self._bits, len(items))
        return items[digit]


def zipf_urn(items: Sequence[T]) -> tuple[T, ...]:
    """Repeat the k-th of `items` in proportion to 1/k, at least once.

    A uniform draw from the result then follows Zipf's law but for its rounding.
    """
    n = len(items)
    return tuple(
        item for k, item in enumerate(items, 1) for _ in range(max(1, (2 * n + k) // (2 * k)))
    )
