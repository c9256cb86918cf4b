"""Time that the event loop is blocked during a focused crawl, and by which pages.

Run: ``python benchmarks/bench_loop.py [--strategy S] [--budget N] [uci] [wikipedia]``, or with
pytest. The benchmark times every callback of asyncio's loop in a real ``scrapy crawl focused`` of
a recording. Other processes and garbage collections count, so the maximum on a busy machine is
not meaningful.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pytest
from replays import ROOT, available, focused, topics
from scrapy import signals

from focuscrawl.settings import EXTENSIONS
from focuscrawl.signals import page_visited

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from focuscrawl.crawl import Visit

BUDGET = 1000
LIMIT = 50.0  # milliseconds
WORST = 5
_OUT = "BENCH_LOOP_OUT"


class LoopHolds:
    """Scrapy extension that times every callback of the loop, and writes the times at the end."""

    def __init__(self, out: str) -> None:
        self.out = Path(out)
        self.held: list[tuple[float, float, str, str]] = []
        self.note = ""
        self.page = ""
        self.collecting = 0.0
        self.run = asyncio.Handle._run

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(os.environ[_OUT])
        crawler.signals.connect(extension.page_visited, signal=page_visited)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_idle, signal=signals.spider_idle)
        return extension

    def spider_opened(self) -> None:
        run, held = self.run, self.held

        def timed(handle: asyncio.Handle) -> None:
            self.page = self.note = ""
            start, busy = perf_counter(), thread_time()
            run(handle)
            busy, wall = thread_time() - busy, perf_counter() - start
            held.append((1e3 * wall, 1e3 * busy, self.page, self.note))

        gc.callbacks.append(self.collected)
        asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]

    def collected(self, phase: str, info: dict[str, int]) -> None:
        """Record the start or end of a garbage collection."""
        if phase == "start":
            self.collecting = perf_counter()
        elif info["generation"] == 2:
            took = 1e3 * (perf_counter() - self.collecting)
            self.note += f" [full garbage collection, {took:.0f} ms]"

    def page_visited(self, visit: Visit) -> None:
        self.page = f"{visit.url} ({visit.bytes / 1000:.0f} kB, {visit.links} links)"

    def spider_idle(self) -> None:
        """The crawl is over: what comes now is not crawling."""
        gc.callbacks.remove(self.collected)
        asyncio.Handle._run = self.run  # type: ignore[method-assign]
        self.out.write_text(json.dumps(self.held), encoding="utf-8")


def holds(web: str, topic: str, strategy: str, budget: int) -> list[tuple[float, float, str, str]]:
    """Crawl; return milliseconds blocked, computing time, page and note for every callback."""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "held.json"
        command = focused(web, topic, strategy, budget, Path(name) / "crawl")
        command += ["-s", f"EXTENSIONS={json.dumps(EXTENSIONS | {'bench_loop.LoopHolds': 1})}"]
        environment = {**os.environ, _OUT: str(out)}
        path = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=environment)
        found: list[tuple[float, float, str, str]] = json.loads(out.read_text(encoding="utf-8"))
        return found


def report(web: str, topic: str, strategy: str, budget: int) -> list[str]:
    held = holds(web, topic, strategy, budget)
    pages = [each for each in held if each[2]]

    def line(what: str, column: int, rows: list[Any]) -> str:
        values = np.array([row[column] for row in rows])
        p50, p99, p999 = np.percentile(values, [50, 99, 99.9])
        over = int((values > LIMIT).sum())
        return (
            f"  {what:<28} p50 {p50:6.2f}, p99 {p99:6.2f}, p99.9 {p999:6.2f}, "
            f"max {values.max():6.1f} ms; over {LIMIT:.0f} ms: {over} of {len(values)}"
        )

    worst = sorted(held, key=lambda each: -each[1])[:WORST]
    return [
        f"{web} {topic}, {strategy}:",
        line("callback, by the clock", 0, held),
        line("with a page, by the clock", 0, pages),
        line("with a page, computing", 1, pages),
        *(
            f"    {wall:6.1f} ms, {busy:6.1f} computing: {page or '-'}{note}"
            for wall, busy, page, note in worst
        ),
    ]


@pytest.mark.parametrize("web", ["uci", "wikipedia"])
def test_loop(web: str) -> None:
    if not available(web):
        pytest.skip(f"no recorded web {web}")
    print("\n" + "\n".join(report(web, topics(web)[1], "best-first", BUDGET)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how long a crawl blocks the event loop.")
    parser.add_argument("webs", nargs="*", default=["uci", "wikipedia"])
    parser.add_argument("--topic", help="topic of the crawl; default: the second with seeds")
    parser.add_argument("--strategy", default="best-first")
    parser.add_argument("--budget", type=int, default=BUDGET)
    options = parser.parse_args()
    for web in options.webs:
        topic = options.topic or topics(web)[1]
        print("\n".join(report(web, topic, options.strategy, options.budget)), flush=True)


if __name__ == "__main__":
    main()
