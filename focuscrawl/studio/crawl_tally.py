"""Counts the relevant pages of crawls for the studio's overview, and draws their harvest rates.

Each page in a store is read once, so the cost of an update does not grow with the crawl.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import closing
from threading import Lock
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl.rejudging import REDEFINED
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.report.status import open_store
from focuscrawl.studio.topic_folder import read_origin

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.store import CrawlStore

_FIRST_WIDTH = 5  # fetches in a bin
_MAX_PAGES_READ = 100_000  # in one update: takes about half a second
_MAX_BINS = 60  # of a drawing
_MAX_CRAWLS = 200  # the least recently read is dropped first
_WIDTH, _HEIGHT = 100, 30  # of a drawing


class CrawlTally:
    """Number of relevant pages of a crawl, and sums of relevance over bins of successive fetches.

    If there are more than 60 bins, pairs of bins are merged.

    Attributes
    ----------
    relevant : int
        Number of pages whose relevance is above 0.5.
    fetched : int
        Number of fetches read so far.
    """

    def __init__(self) -> None:
        self._last_event = 0
        self.relevant = 0
        self.fetched = 0
        self._width = _FIRST_WIDTH
        self._bins: list[tuple[int, float]] = []  # fetches, sum of their relevance

    def update(self, store: CrawlStore) -> None:
        """Read up to 100,000 new pages from the store; start again if the topic has changed."""
        changes = "SELECT coalesce(max(id), 0), sum(kind = ?) FROM events WHERE id > ?"
        last_event, redefined = store.row(changes, (REDEFINED, self._last_event))
        if redefined:
            self.relevant, self.fetched, self._width, self._bins = 0, 0, _FIRST_WIDTH, []
        self._last_event = max(last_event, self._last_event)
        sums = """SELECT (seq - 1) / ?, count(*), sum(relevance), sum(relevance > ?), max(seq)
                  FROM page WHERE seq > ? AND seq <= ? GROUP BY 1 ORDER BY 1"""
        for place, n, relevance, relevant, last in store.rows(
            sums, (self._width, RELEVANT, self.fetched, self.fetched + _MAX_PAGES_READ)
        ):
            self._bins += [(0, 0.0)] * (place + 1 - len(self._bins))
            before = self._bins[place]
            self._bins[place] = (before[0] + n, before[1] + relevance)
            self.relevant += relevant
            self.fetched = last
        while len(self._bins) > _MAX_BINS:
            pairs = zip(self._bins[::2], [*self._bins[1::2], (0, 0.0)], strict=False)
            self._bins = [(a[0] + b[0], a[1] + b[1]) for a, b in pairs]
            self._width *= 2

    def draw(self) -> dict[str, Any] | None:
        """Return an SVG path that shows the harvest rate over the fetches, and the highest rate.

        The path is in a box with the width 100 and the height 30. The full height is the harvest
        rate 1. The result is None if there are fewer than two bins.
        """
        rates = [relevance / n for n, relevance in self._bins if n]
        if len(rates) < 2:
            return None
        step = _WIDTH / (len(rates) - 1)
        points = [f"{i * step:.1f} {(1.0 - rate) * _HEIGHT:.1f}" for i, rate in enumerate(rates)]
        return {"line": f"M{'L'.join(points)}", "most": max(rates)}


class CrawlTallies:
    """Keeps a `CrawlTally` of each crawl."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tallies: OrderedDict[tuple[Path, int], CrawlTally] = OrderedDict()

    def read(self, path: Path) -> dict[str, Any]:
        """Return ``relevant`` and ``spark`` (see `CrawlTally.draw`) of the crawl in `path`.

        The field ``tallied`` is the number of fetches that were counted so far. A large crawl is
        read in several calls. The fields ``critic`` and ``topic`` are those of `read_origin`.
        """
        with self._lock, closing(open_store(path)) as store:
            key = (path, (path / "crawl.db").stat().st_ino)  # another crawl may take the path
            tally = self._tallies.setdefault(key, CrawlTally())
            self._tallies.move_to_end(key)
            if len(self._tallies) > _MAX_CRAWLS:
                self._tallies.popitem(last=False)
            tally.update(store)
            return {
                "relevant": tally.relevant,
                "tallied": tally.fetched,
                "spark": tally.draw(),
                **read_origin(store, path),
            }
