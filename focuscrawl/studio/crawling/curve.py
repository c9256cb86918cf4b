"""Harvest and loss against fetches, in a bounded number of points."""

from __future__ import annotations

from collections import deque

from focuscrawl.report.summary import RECENT

_POINTS = 500


class Curve:
    """Loss of all fetches so far, and harvest rate of the last `RECENT`, point by point.

    When there are 500 points every other one is dropped, and from then on every other fetch makes
    none: what is kept does not grow with the crawl.

    Attributes
    ----------
    fetched, relevance : fetches so far, and the sum of their R
    """

    def __init__(self) -> None:
        self.fetched, self.relevance = 0, 0.0
        self._every = 1
        self._latest: deque[float] = deque(maxlen=RECENT)
        self._recent = 0.0
        self._points: list[tuple[int, float, float]] = []

    @property
    def harvest_rate(self) -> float | None:
        """Mean R of all fetches; None before the first."""
        return self.relevance / self.fetched if self.fetched else None

    @property
    def recent_harvest_rate(self) -> float | None:
        """Mean R of the last `RECENT` fetches; None before the first."""
        return self._recent / len(self._latest) if self._latest else None

    def add(self, relevance: float) -> None:
        """Add the next fetch."""
        if len(self._latest) == RECENT:
            self._recent -= self._latest[0]
        self._latest.append(relevance)
        self._recent += relevance
        self.fetched += 1
        self.relevance += relevance
        if self.fetched % self._every == 0:
            self._points.append(self._point())
            if len(self._points) > _POINTS:
                self._points = self._points[1::2]
                self._every *= 2

    def plain(self) -> dict[str, list[float]]:
        """Return ``fetches``, ``loss`` and ``harvest``, a list each; the last fetch is in it."""
        points = self._points
        if points and points[-1][0] != self.fetched:
            points = [*points, self._point()]
        return {
            "fetches": [each[0] for each in points],
            "loss": [each[1] for each in points],
            "harvest": [each[2] for each in points],
        }

    def _point(self) -> tuple[int, float, float]:
        loss = 1.0 - self.relevance / self.fetched
        return self.fetched, round(loss, 4), round(self._recent / len(self._latest), 4)
