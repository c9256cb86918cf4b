"""How long a live round takes at most, so that no host holds it up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

from focuscrawl.completeness.stop_expression import TIME
from focuscrawl.crawl.part import Part
from focuscrawl.foundation.values import number
from focuscrawl.settings import DOWNLOAD_DELAY

if TYPE_CHECKING:
    from collections.abc import Mapping

_LEAST = 60.0  # seconds; in less, what begins a bucket's fetches would be much of them
_ALL = 1 << 62  # fetches of a host that need not wait


class RoundTime(NamedTuple):
    """The time that a bucket's share of a live round takes at most.

    Attributes
    ----------
    seconds : from its first fetch
    fetches : of one host that politeness allows in it: so many are chosen at most
    """

    seconds: float
    fetches: int

    @classmethod
    def of(cls, settings: Mapping[str, Any], share: float, seconds: float | None) -> Self:
        """Return the time of a round.

        Parameters
        ----------
        settings : of the crawl
        share : fetches of a bucket, on average
        seconds : as the plan says; None: as long as it takes to fetch `share` pages of one host,
            or a minute
        """
        written = settings.get("DOWNLOAD_DELAY", DOWNLOAD_DELAY)
        delay = number().read("setting DOWNLOAD_DELAY", written)
        seconds = max(_LEAST, share * delay) if seconds is None else seconds
        return cls(seconds, max(1, int(seconds / delay)) if delay > 0.0 else _ALL)


class RoundEnd(Part):
    """Ends a bucket's fetches when the time of the round is over; what waits is left to others."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began: float | None = None
        self._over = False

    def poll(self, now: float) -> bool:
        """Look at the clock, which runs from the first call."""
        self._began = now if self._began is None else self._began
        self._over = now - self._began >= self._seconds
        return self._over

    def stop_reason(self) -> str | None:
        """Return the reason if the time is over."""
        return TIME if self._over else None
