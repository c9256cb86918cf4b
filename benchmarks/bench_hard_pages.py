"""Time that hard, large or link-rich pages block the event loop.

Run: ``python benchmarks/bench_hard_pages.py [--strategy S] [--runs N] [KIND/SIZE ...]``, or with
pytest. A real ``scrapy crawl focused`` fetches one page at a time from a server on loopback. The
result is the longest time between two polls of the loop for each page, and the minimum of several
runs, to exclude other processes and garbage collections.

Kinds are those of `tests/server/bad/hard.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any, Self

from replays import ROOT
from scrapy import signals

from focuscrawl.engine.private import wake
from focuscrawl.settings import EXTENSIONS
from focuscrawl.signals import page_visited

sys.path.append(str(ROOT / "tests"))
from integration.badweb import SETTINGS, BadWeb, listening
from integration.running import Kept, command
from server.bad.hard import KINDS, SIZES

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

RUNS = 3
LIMIT = 50.0  # milliseconds
WARM = "script/small"  # fetched first, so one-time work is not attributed to a measured page
_OUT = "BENCH_HARD_OUT"


class Watchdog:
    """Scrapy extension that records the longest time that each page blocks the loop.

    The engine waits with the next request until the page is recorded.
    """

    def __init__(self, crawler: Crawler, out: str) -> None:
        self.crawler = crawler
        self.out = Path(out)
        self.page = self.began = ""
        self.woke = perf_counter()
        self.busy = thread_time()
        self.held: dict[str, tuple[float, float]] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler, os.environ[_OUT])
        connect = crawler.signals.connect
        connect(extension.spider_opened, signal=signals.spider_opened)
        connect(extension.requested, signal=signals.request_reached_downloader)
        connect(extension.page_visited, signal=page_visited)
        connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self) -> None:
        loop: Any = asyncio.get_running_loop()
        select = loop._selector.select

        def watched(timeout: float | None = None) -> Any:
            held = 1e3 * (perf_counter() - self.woke), 1e3 * (thread_time() - self.busy)
            self.held[self.began] = max(held, self.held.get(self.began, (0.0, 0.0)))
            ready = select(timeout)
            self.woke, self.busy, self.began = perf_counter(), thread_time(), self.page
            return ready

        loop._selector.select = watched

    def requested(self, request: Request) -> None:
        self.page = request.url.partition("//")[2].partition("/")[2]
        self.crawler.engine.pause()

    def page_visited(self) -> None:
        self.page = "-"  # what comes now, the end of the crawl too, is not this one's
        self.page = "-"  # what comes now, the end of the crawl too, is not this one's
        self.crawler.engine.unpause()
        wake(self.crawler)

    def spider_closed(self) -> None:
        self.out.write_text(json.dumps(self.held), encoding="utf-8")


def crawl(web: BadWeb, pages: list[str], strategy: str) -> dict[str, tuple[Any, ...]]:
    """Crawl; return milliseconds blocked, computing time, outcome, words and links per page."""
    seeds = [f"{web.origins['hard']}/{page}" for page in dict.fromkeys((WARM, *pages))]
    given = {"topic": "/Arts/Music/Jazz", "critic": "models/demo", "strategy": strategy}
    with tempfile.TemporaryDirectory() as name:
        out, listed = Path(name) / "held.json", Path(name) / "seeds.txt"
        listed.write_text("\n".join(seeds), encoding="utf-8")
        settings = SETTINGS | {
            "EXTENSIONS": json.dumps(EXTENSIONS | {"bench_hard_pages.Watchdog": 1}),
            "ROBOTSTXT_OBEY": 0,
            "CONCURRENT_REQUESTS": 1,
        }
        options = [part for key, value in settings.items() for part in ("-s", f"{key}={value}")]
        folder = Path(name) / "crawl"
        line = command(folder, *options, **given, seeds=listed, budget=len(seeds))
        environment = {**os.environ, _OUT: str(out)}
        path = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        done = subprocess.run(
            line, cwd=ROOT, capture_output=True, text=True, env=environment, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        held = json.loads(out.read_text(encoding="utf-8"))
        rows = Kept(folder).query("SELECT url, error, links FROM pages")
    found = {url.partition("//")[2].partition("/")[2]: rest for url, *rest in rows}
    return {page: (*held[page], *found[page]) for page in pages if page in found and page in held}


def report(pages: list[str], strategy: str, runs: int) -> Iterable[str]:
    with tempfile.NamedTemporaryFile() as log, listening(Path(log.name)) as web:
        found = [crawl(web, pages, strategy) for _ in range(runs)]
    yield f"{strategy}: longest time a page blocks the loop, ms; minimum of {runs} runs (all; CPU)"
    over = []
    for page in pages:
        held = sorted(run[page][:2] for run in found if page in run)
        if not held:
            yield f"  {page:<32} not fetched"
            continue
        error, links = found[0][page][2:]
        walls = ", ".join(f"{wall:.0f}" for wall, _ in held)
        yield (
            f"  {page:<32}{held[0][0]:8.1f} ({walls}; {held[0][1]:.1f})"
            f"  {error or 'page'}, {links} links"
        )
        over += [page] * (held[0][0] > LIMIT)
    yield f"over {LIMIT:.0f} ms: {', '.join(over) or 'none'}"


def test_hard_pages() -> None:
    pages = [f"{kind}/{size}" for kind in KINDS for size in SIZES]
    print()
    for line in report(pages, "apprentice", 1):
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how long pages block the event loop.")
    parser.add_argument("pages", nargs="*", help="KIND, /SIZE or KIND/SIZE; all by default")
    parser.add_argument("--strategy", default="apprentice")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    every = [f"{kind}/{size}" for kind in KINDS for size in SIZES]
    asked = options.pages or [""]
    pages = [page for page in every if any(f"{each}" in f"{page}" for each in asked)]
    for line in report(pages, options.strategy, options.runs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
