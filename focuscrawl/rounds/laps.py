"""What the time of a task went to."""

from __future__ import annotations

from time import process_time


class Laps:
    """Seconds of processor by what was done in them.

    Attributes
    ----------
    seconds : by what was done; what was done several times is added up
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = process_time()

    def end(self, what: str) -> None:
        """Say what was done since the last time, or since the beginning."""
        now = process_time()
        self.seconds[what] = self.seconds.get(what, 0.0) + now - self._since
        self._since = now
