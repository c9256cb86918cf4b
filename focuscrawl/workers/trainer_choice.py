"""Who has made the fetches of late."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_FETCHES = 64  # of all workers, that a share is a mean of, the latest counting most
_MANY, _FEW = 0.3, 0.1


class FetchShares:
    """Each worker's share of the latest fetches."""

    def __init__(self) -> None:
        self._of: dict[int, float] = {}
        self._made: dict[int, int] = {}

    def look(self, made: Mapping[int, int]) -> None:
        """Take in how many fetches each worker has ever made."""
        since = {each: n - self._made.get(each, n) for each, n in made.items()}
        new = sum(since.values())
        self._made = dict(made)
        weight = min(1.0, new / _FETCHES)
        self._of = {
            each: (1.0 - weight) * self._of.get(each, 0.0) + weight * n / max(new, 1)
            for each, n in since.items()
        }

    def should_follow(self, me: int, trainer: int) -> bool:
        """Tell whether a worker should be the one that trains in place of another.

        It should if it makes many of the fetches, none more, and the other next to none: what is
        judged here is learned sooner then, and a replay waits for it.
        """
        mine = self._of.get(me, 0.0)
        most = mine == max(self._of.values(), default=0.0)
        return most and mine > _MANY and self._of.get(trainer, 0.0) < _FEW
