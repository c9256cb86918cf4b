"""Those who watch crawls: one a crawl, however many tabs look."""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any

from focuscrawl.studio.crawling.watch import Watch

if TYPE_CHECKING:
    from focuscrawl.studio.desk import Desk

_KEPT = 8  # crawls; that watched longest ago is forgotten first
_EVERY = 0.9  # seconds for which a look holds


class Watches:
    """Looks at the crawls of a studio."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._lock = Lock()
        self._watches: OrderedDict[tuple[str, int], _Shared] = OrderedDict()

    def look(self, name: str) -> dict[str, Any]:
        """Return what `Watch.look` does, of the crawl called so."""
        crawl = self._desk.crawl(name)
        # another crawl may have taken the place of one
        key = (name, (crawl.place / "crawl.db").stat().st_ino)
        with self._lock:
            shared = self._watches.get(key)
            if shared is None:
                shared = self._watches[key] = _Shared(Watch(crawl))
            self._watches.move_to_end(key)
            old = [self._watches.popitem(last=False)[1] for _ in range(len(self._watches) - _KEPT)]
        for each in old:
            each.watch.close()
        return shared.look()


class _Shared:
    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._lock = Lock()
        self._seen: dict[str, Any] = {}
        self._until = 0.0

    def look(self) -> dict[str, Any]:
        with self._lock:
            if time.monotonic() >= self._until:
                self._seen = self.watch.look()
                self._until = time.monotonic() + _EVERY
            return self._seen
