"""What the fetches of late say: how fast a worker is, what its pages bring, who makes the most.

Each is a mean of which the latest count most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.workers.budget import nearly

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_WORK = 0.5  # seconds of work that a pace is a mean of
_PAGES = 32  # that the links a page brings are a mean of
_FETCHES = 64  # of all workers, that a share is a mean of
_MANY, _FEW = 0.3, 0.1  # shares of the fetches


class Throughput:
    """Fetches a second of the time in which a worker does not stand still.

    It stands still while nothing is under way and the others have better links. That time does
    not count: a worker that waits could do more, and that is what all compare their links for.

    Attributes
    ----------
    value : fetches a second
    """

    def __init__(self) -> None:
        self.value = 0.0
        self._since: float | None = None
        self._still = 0.0
        self._told_at, self._told = 0.0, 0

    def look(self, now: float, *, still: bool) -> None:
        """Say whether the worker stands still from now on."""
        if self._since is not None:
            self._still += now - self._since
        self._since = now if still else None

    def count(self, now: float, done: int) -> None:
        """Take in how many fetches were made ever."""
        self.look(now, still=self._since is not None)
        seconds = now - self._told_at
        work = min(max(seconds - self._still, 0.0), 1.0)
        if work > 0.0:
            share = min(1.0, work / _WORK)
            self.value += share * ((done - self._told) / work - self.value)
        self._told_at, self._told, self._still = now, done, 0.0


class LinkYield:
    """Counts the links that a page brings which are as good as the one that led to it.

    If each of these brings r others on average, a link that waits stands for
    1 + r + r² + ... = 1 / (1 - r) fetches, the total progeny of a branching process; for any
    number of them if r is 1 or more.

    Attributes
    ----------
    rate : r, of late
    """

    def __init__(self) -> None:
        self.rate = 0.0

    def count(self, score: float, found: Iterable[float]) -> None:
        """Take in a page: the score of the link that led to it, and of those that it brought."""
        good = sum(each >= nearly(score) for each in found)
        self.rate += (good - self.rate) / _PAGES

    def stands_for(self, most: int) -> int:
        """Return how many fetches a link that waits stands for, `most` at most."""
        return most if most * (1.0 - self.rate) <= 1.0 else round(1.0 / (1.0 - self.rate))


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
