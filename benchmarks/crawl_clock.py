"""A Scrapy extension that measures the time of a crawl from its first fetch to its last."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from focuscrawl.settings import EXTENSIONS
from focuscrawl.signals import page_visited

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class CrawlClock:
    """Writes wall-clock seconds and processor seconds of this process to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._first: tuple[float, float] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        clock = cls(Path(crawler.settings["CRAWL_CLOCK"]))
        crawler.signals.connect(clock.page_visited, signal=page_visited)
        return clock

    def page_visited(self) -> None:
        now = (time.perf_counter(), time.process_time())
        if self._first is None:
            self._first = now
        took = [end - start for end, start in zip(now, self._first, strict=True)]
        self._path.write_text(json.dumps(took))


def with_clock(path: Path) -> list[str]:
    """Return the options of a crawl that writes its times to `path`."""
    extensions = {**EXTENSIONS, "crawl_clock.CrawlClock": 0}
    return ["-s", f"EXTENSIONS={json.dumps(extensions)}", "-s", f"CRAWL_CLOCK={path}"]
