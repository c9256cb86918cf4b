"""How fast a worker is, or would be if the others had not the better links."""

from __future__ import annotations

_WINDOW = 0.5  # seconds of work that a pace is a mean of, the latest counting most


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
            share = min(1.0, work / _WINDOW)
            self.value += share * ((done - self._told) / work - self.value)
        self._told_at, self._told, self._still = now, done, 0.0
