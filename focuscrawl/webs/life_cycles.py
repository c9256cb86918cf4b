"""When the pages of a changing web come, change, move and go."""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import NamedTuple

from focuscrawl.webs.indexing import schemeless

NEVER = 1 << 30

LATE = 0.25  # share of the pages that come after version 1 ...
_COMES = 0.3  # ... of those still to come, with each version
_GOES = 0.02  # chance of a page to be removed, with each version
_MOVES = 0.01
#: chances to be edited with a version, and the shares of pages that have them: most pages of the
#: Web hardly ever change, some all the time (Cho and Garcia-Molina, VLDB 2000)
EDITED = ((0.0, 0.5), (0.1, 0.25), (0.4, 0.15), (0.9, 0.1))


class Life(NamedTuple):
    """The versions of a changing web that a page comes, changes, moves and goes with.

    Attributes
    ----------
    born, removed, moved : versions from which on it is there, is gone, is elsewhere; `NEVER`
    rate : chance of an edit with each version after `born`
    key : for further draws
    """

    born: int
    removed: int
    moved: int
    rate: float
    key: int

    def edits(self, version: int) -> list[int]:
        """Return the versions, up to one, that brought the page as it is: its first and edits."""
        steps = range(self.born + 1, version + 1)
        return [self.born, *(step for step in steps if fraction(self.key, step) < self.rate)]


class Lives:
    """The lives of all pages, each a function of its URL and the random state."""

    def __init__(self, random_state: int) -> None:
        self._state = random_state
        self._known: dict[str, Life] = {}

    def of(self, url: str) -> Life:
        """Return the life of the page at a normalised URL, whatever its scheme."""
        life = self._known.get(url)
        if life is None:
            life = self._known[url] = self._draw(schemeless(url))
        return life

    def _draw(self, url: str) -> Life:
        told = blake2b(f"{self._state} {url}".encode("utf-8", "replace"), digest_size=8)
        key = int.from_bytes(told.digest(), "little")
        born = 1
        if fraction(key, -1) < LATE:
            born = 2 + _waits(fraction(key, -2), _COMES)
        drawn, rate = fraction(key, -3), 0.0
        for rate, share in EDITED:  # noqa: B007 - the last one if none was drawn
            drawn -= share
            if drawn < 0.0:
                break
        return Life(
            born=born,
            removed=born + 1 + _waits(fraction(key, -4), _GOES),
            moved=born + 1 + _waits(fraction(key, -5), _MOVES),
            rate=rate,
            key=key,
        )


def fraction(key: int, number: int) -> float:
    """Return a number in [0, 1) that is a function of two, the same on every machine."""
    told = blake2b(f"{key} {number}".encode(), digest_size=8).digest()
    return (int.from_bytes(told, "little") >> 11) * 2.0**-53


def _waits(drawn: float, chance: float) -> int:
    """Return how many versions something waits that has a chance with each (geometric)."""
    return int(math.log1p(-drawn) / math.log1p(-chance))
