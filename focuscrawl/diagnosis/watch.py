"""Tells a fall of the harvest rate from noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.diagnosis.causes import RELEVANT, Diagnosis, diagnose

if TYPE_CHECKING:
    from collections.abc import Sequence

#: kinds of the events that tell of a fall, and of its end
ALARM, RECOVERED = "alarm", "recovered"

WINDOW = 50  # latest fetches that are held against all before them
_FALL = 0.5  # of the rate before, or less
_SURE = 3.0  # standard errors
_AGAIN = 0.75  # of the rate before the fall: it is over


class Outcome(NamedTuple):
    """What came of a fetch.

    Attributes
    ----------
    relevance : R, 0 for what is no page
    judged : whether it was a page, and a new one
    topic : its most probable class
    from_topic, from_relevant : class of the page it was first found on, and whether that is
        relevant; None and False for a start URL
    """

    relevance: float
    judged: bool
    topic: str | None
    from_topic: str | None
    from_relevant: bool


class HarvestWatch:
    """Watches the harvest rate, fetch by fetch.

    The last `WINDOW` fetches are held against all before them, as many at least: an alarm is
    a rate of half or less that chance does not explain, three standard errors of a mean of
    fetches that have nothing to do with each other. It ends when three quarters are reached
    again; a fall by half of what the alarm told of is another.

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
        self._fetches: list[Outcome] = []
        self._pages: dict[str, tuple[str | None, bool]] = {}
        self._sum = 0.0  # of all fetches before the window
        self._squares = 0.0
        self._recent = 0.0  # of those in it

    def visited(
        self,
        url: str,
        referrer: str | None,
        *,
        relevance: float,
        topic: str | None,
        judged: bool,
    ) -> str | None:
        """Take note of a fetch.

        Parameters
        ----------
        url, referrer : of the page, and of the page it was first found on
        relevance, topic, judged : see `Outcome`

        Returns
        -------
        `ALARM` or `RECOVERED` if it is that fetch which tells; `alarm` says more
        """
        self._pages[url] = (topic, relevance > RELEVANT)
        from_topic, from_relevant = self._pages.get(referrer or "", (None, False))
        self._fetches.append(Outcome(relevance, judged, topic, from_topic, from_relevant))
        self._recent += relevance
        if len(self._fetches) > WINDOW:
            left = self._fetches[-WINDOW - 1].relevance
            self._recent -= left
            self._sum += left
            self._squares += left * left
        earlier = len(self._fetches) - WINDOW
        if earlier < WINDOW:
            return None
        return self._tell(self._sum / earlier, self._recent / WINDOW, earlier)

    def _tell(self, before: float, now: float, earlier: int) -> str | None:
        told = self.alarm
        if told is not None and now >= _AGAIN * told.before:
            self.alarm = None
            return RECOVERED
        fallen_from = before if told is None else told.now
        if now > _FALL * fallen_from or (told is not None and told.seq + WINDOW > self._seq):
            return None
        variance = max(self._squares / earlier - before * before, 0.0)
        error = math.sqrt(variance * (1.0 / WINDOW + 1.0 / earlier))
        if told is None and before - now <= _SURE * error:
            return None
        if told is not None and now >= told.now:
            return None
        latest = self._fetches[-WINDOW:]
        self.alarm = diagnose(latest, self._fetches[:-WINDOW], self._marked)
        return ALARM

    @property
    def _seq(self) -> int:
        return len(self._fetches)
