"""Alarms: when a fall of the harvest rate is more than noise, and when it is over."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from focuscrawl.diagnosis.attribution import RELEVANT, Diagnosis, Outcome, Tally, diagnose

if TYPE_CHECKING:
    from collections.abc import Sequence

#: kinds of the events that tell of a fall, and of its end
ALARM, RECOVERED = "alarm", "recovered"

WINDOW = 50  # latest fetches that are held against all before them
_FALL = 0.5  # of the rate before, or less
_SURE = 3.0  # standard errors
_AGAIN = 0.75  # of the rate before the fall: it is over


class HarvestWatch:
    """Watches the harvest rate, fetch by fetch.

    The last `WINDOW` fetches are held against all before them, as many at least: an alarm is
    a rate of half or less that chance does not explain, three standard errors of a mean of
    fetches that have nothing to do with each other. It ends when three quarters are reached
    again; a fall by half of what the alarm told of is another. Of fetches before the last it
    keeps counts, and by `visited`, not by `add`, a number a URL.

    Parameters
    ----------
    marked : topic paths in focus

    Attributes
    ----------
    alarm : the fall under way, None if there is none
    """

    def __init__(self, marked: Sequence[str]) -> None:
        self.alarm: Diagnosis | None = None
        self._marked = marked
        self._latest: deque[Outcome] = deque()
        self._earlier = Tally()
        self._recent = 0.0  # sum of R of the latest
        self._classes: dict[str, int] = {}
        self._names: list[str] = []  # of the classes, by number
        self._page: dict[int, int] = {}  # by URL, no dense number: 2 * class + whether relevant

    def visited(
        self,
        url: int,
        referrer: int | None,
        *,
        relevance: float,
        topic: str | None,
        judged: bool,
        overtakes: str | None = None,
    ) -> str | None:
        """Take note of a fetch.

        Parameters
        ----------
        url, referrer : numbers of the page, and of the page it was first found on
        relevance, topic, judged, overtakes : see `Outcome`

        Returns
        -------
        `ALARM` or `RECOVERED` if it is that fetch which tells; `alarm` says more
        """
        from_topic, from_relevant = self._origin(referrer)
        number = self._classes.setdefault(topic or "", len(self._names))
        if number == len(self._names):
            self._names.append(topic or "")
        self._page[url] = 2 * number + (relevance > RELEVANT)
        return self.add(Outcome(relevance, judged, topic, from_topic, from_relevant, overtakes))

    def add(self, outcome: Outcome) -> str | None:
        """Take note of a fetch of which it is known where it was found; return as `visited`."""
        self._latest.append(outcome)
        self._recent += outcome.relevance
        if len(self._latest) > WINDOW:
            left = self._latest.popleft()
            self._recent -= left.relevance
            self._earlier.add(left)
        return self._tell() if self._earlier.fetches >= WINDOW else None

    def _origin(self, referrer: int | None) -> tuple[str | None, bool]:
        """Return class of the page that a fetch was found on, and whether that is relevant."""
        kept = -1 if referrer is None else self._page.get(referrer, -1)
        if kept < 0:
            return None, False
        return self._names[kept // 2] or None, bool(kept % 2)

    def _tell(self) -> str | None:
        before, now = self._earlier.rate, self._recent / WINDOW
        told, seq = self.alarm, self._earlier.fetches + WINDOW
        if told is not None and now >= _AGAIN * told.before:
            self.alarm = None
            return RECOVERED
        if told is None:
            n = self._earlier.fetches
            variance = max(self._earlier.squares / n - before * before, 0.0)
            error = math.sqrt(variance * (1.0 / WINDOW + 1.0 / n))
            fallen = now <= _FALL * before and before - now > _SURE * error
        else:
            fallen = now <= _FALL * told.now and now < told.now and seq >= told.seq + WINDOW
        if not fallen:
            return None
        self.alarm = diagnose(list(self._latest), self._earlier, self._marked)
        return ALARM
