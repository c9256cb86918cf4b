"""A frontier of a million links on 10,000 hosts, compared with a dictionary and one heap.

Run: ``python benchmarks/bench_frontier.py [LINKS] [web]`` (a minute or two, 1.5 GB), or with
pytest. ``web`` uses URLs of the synthetic web, which has a host for every 50 pages. Both frontiers
get the same links in the same order, each in a process of its own, to separate their memory. The
naive frontier keeps URLs in a dictionary and (score, URL) in one heap, sets the links of busy
hosts aside until the hosts are ready, and saves itself by pickling everything.
"""

from __future__ import annotations

import heapq
import json
import os
import pickle
import subprocess
import sys
import tempfile
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from focuscrawl.crawl import CrawlConfig
from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.crawl.traps import Discounts
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.frontier import Frontier
from focuscrawl.store import VisitRecord
from focuscrawl.store.schema import QUEUED
from focuscrawl.webs.synthetic import SyntheticWeb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LINKS = 1_000_000
HOSTS = 10_000
PAGE = 100  # links found at a time
POPS = 20_000
DELAY = 1.0  # seconds between two requests to a host, on a simulated clock
ROOM = 16  # concurrent requests
LATENCY = 0.25  # seconds a request takes, simulated


def links(count: int) -> Iterator[tuple[str, float]]:
    """Yield URLs with scores: few hosts have most links, as on the Web."""
    rng = np.random.default_rng(0)
    hosts = (HOSTS * rng.random(count) ** 2).astype(np.int64).tolist()
    scores = rng.random(count).tolist()
    for i, (host, score) in enumerate(zip(hosts, scores, strict=True)):
        yield f"https://www.host{host}.example/people/{i // 97}/page-{i}.html", score


def web_links(count: int) -> Iterator[tuple[str, float]]:
    """Yield the first pages of a synthetic web, with scores."""
    rng = np.random.default_rng(0)
    urls = SyntheticWeb(count / 3000 * 1.01).urls()
    for url in islice(urls, count):
        yield url, float(rng.random())


SOURCES = {"made": links, "web": web_links}


def pages(count: int, source: str) -> Iterator[list[tuple[str, float]]]:
    """Yield the same links, page by page."""
    found = SOURCES[source](count)
    while page := list(islice(found, PAGE)):
        yield page


def resident() -> float:
    """Return the resident memory of this process in MB."""
    return float(psutil.Process().memory_info().rss) / 1e6


def seconds(step: Callable[[], object]) -> float:
    """Return processor time, which other processes affect little."""
    start = process_time()
    step()
    return process_time() - start


class Focused:
    """The frontier of the project with its URL table, used as in `Crawl`."""

    def __init__(self) -> None:
        self.urls = UrlTable()
        self.frontier = Frontier(per_host=1, delay=DELAY)
        self.discounts = Discounts()
        self.held = 0.0

    def insert(self, page: list[tuple[str, float]]) -> None:
        for url, score in page:
            number = self.urls.add(url, 1, None)
            self.urls.set_state(number, QUEUED, score)
            self.frontier.push(number, self.urls.host_id(number), score)

    def pop(self, now: float) -> int | None:
        while (number := self.frontier.peek(now)) is not None:
            if not self.frontier.discount(number, self.discounts.halvings(self.urls[number])):
                self.frontier.take(number, now)
                return number
        return None

    def release(self, taken: int, now: float) -> None:
        self.frontier.release(taken, now)

    def ready(self) -> float:
        return self.frontier.next_ready() or np.inf

    def update(self, numbers: list[int], scores: list[float]) -> None:
        self.frontier.update(np.array(numbers), np.array(scores))

    def rescore(self, scores: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        waiting = self.frontier.queued()
        arrangement = self.frontier.sort_queues(waiting, scores[: len(waiting)])
        self.held = seconds(lambda: self.frontier.replace_queues(arrangement))


class Naive:
    """A dictionary and a heap."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.scores: dict[str, float] = {}
        self.heap: list[tuple[float, str]] = []
        self.ready_at: dict[str, float] = {}
        self.put_aside: dict[str, list[tuple[float, str]]] = {}
        self.timers: list[tuple[float, str]] = []

    def insert(self, page: list[tuple[str, float]]) -> None:
        for url, score in page:
            if url not in self.scores:
                self.names.append(url)
            self.scores[url] = score
            heapq.heappush(self.heap, (-score, url))

    def pop(self, now: float) -> str | None:
        while self.timers and self.timers[0][0] <= now:
            _, host = heapq.heappop(self.timers)
            for entry in self.put_aside.pop(host, ()):
                heapq.heappush(self.heap, entry)
        while self.heap:
            entry = heapq.heappop(self.heap)
            url = entry[1]
            if self.scores.get(url) != -entry[0]:
                continue
            host = url.split("/", 3)[2]
            if self.ready_at.get(host, 0.0) > now:
                if host not in self.put_aside:
                    heapq.heappush(self.timers, (self.ready_at[host], host))
                self.put_aside.setdefault(host, []).append(entry)
                continue
            del self.scores[url]
            self.ready_at[host] = now + DELAY
            return url
        return None

    def release(self, taken: str, now: float) -> None:
        """Do nothing, since the delay alone spaces requests to a host."""

    def ready(self) -> float:
        return self.timers[0][0] if self.timers else np.inf

    def update(self, numbers: list[int], scores: list[float]) -> None:
        for number, score in zip(numbers, scores, strict=True):
            url = self.names[number]
            if url in self.scores and self.scores[url] != score:
                self.scores[url] = score
                heapq.heappush(self.heap, (-score, url))

    def rescore(self, scores: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        self.scores = dict(zip(self.scores, scores.tolist(), strict=False))
        self.heap = [(-score, url) for url, score in self.scores.items()]
        heapq.heapify(self.heap)
        self.put_aside.clear()


def measure(frontier: Focused | Naive, count: int, source: str) -> dict[str, float]:
    """Insert, pop, update, re-score and pop; return seconds, microseconds and megabytes."""
    rng = np.random.default_rng(1)
    before = resident()
    spent = 0.0
    for page in pages(count, source):
        spent += seconds(partial(frontier.insert, page))
    result = {"insert links/s": count / spent}
    result["resident MB"] = resident() - before
    clock = Clock(frontier)
    result |= clock.pops(POPS, "")
    numbers = rng.permutation(count)[: count // 5].reshape(-1, PAGE)
    scores = rng.random(numbers.shape)

    def update() -> None:
        for some, new in zip(numbers.tolist(), scores.tolist(), strict=True):
            frontier.update(some, new)

    result["update links/s"] = numbers.size / seconds(update)
    anew = rng.random(count)
    result["re-score all s"] = seconds(lambda: frontier.rescore(anew))
    if isinstance(frontier, Focused):
        result["  of it on the event loop s"] = frontier.held
    result |= clock.pops(POPS, ", re-scored")
    result["resident MB at the end"] = resident() - before
    if isinstance(frontier, Naive):
        result |= save_naive(frontier)
    return result


def save_naive(frontier: Naive) -> dict[str, float]:
    """Pickle the scores, sync, and rebuild the frontier from them."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "frontier.pickle"
        start = perf_counter()
        with file.open("wb") as out:
            pickle.dump(frontier.scores, out, pickle.HIGHEST_PROTOCOL)
            out.flush()
            os.fsync(out.fileno())
        result = {"save s": perf_counter() - start, "store MB": file.stat().st_size / 1e6}
        start = perf_counter()
        with file.open("rb") as saved:
            scores = pickle.load(saved)
        heap = [(-score, url) for url, score in scores.items()]
        heapq.heapify(heap)
        result["reopen s"] = perf_counter() - start
        return result


class Clock:
    """Pops like a downloader: `ROOM` concurrent requests, each of the duration `LATENCY`."""

    def __init__(self, frontier: Any) -> None:
        self.frontier = frontier
        self.now = 0.0
        self.under_way: list[tuple[float, int, Any]] = []
        self.started = 0

    def pops(self, count: int, when: str) -> dict[str, float]:
        took: list[float] = []
        while len(took) < count:
            while self.under_way and self.under_way[0][0] <= self.now:
                self.frontier.release(heapq.heappop(self.under_way)[2], self.now)
            taken = None
            if len(self.under_way) < ROOM:
                start = perf_counter()
                taken = self.frontier.pop(self.now)
                took.append(perf_counter() - start)
            if taken is None:
                back = self.under_way[0][0] if self.under_way else np.inf
                self.now = max(self.now, min(back, max(self.frontier.ready(), self.now + 1e-6)))
                continue
            self.started += 1
            heapq.heappush(self.under_way, (self.now + LATENCY, self.started, taken))
        micro = 1e6 * np.array(took)
        return {
            f"pop p50 us{when}": float(np.median(micro)),
            f"pop p99 us{when}": float(np.percentile(micro, 99)),
            f"pop max us{when}": float(micro.max()),
        }


def plan_in(folder: str) -> CrawlConfig:
    return CrawlConfig(
        topic="/Sports/Cycling",
        seeds="https://seed.example/",
        own_names=True,  # the host is reserved for examples
        strategy="best-first",
        crawl_dir=folder,
        delay=DELAY,
    )


def measure_store(count: int, source: str, folder: str) -> dict[str, float]:
    """Insert as in a crawl with a store; saving is the time until the last commit."""
    before = resident()
    crawl = open_crawl(plan_in(folder))
    spent, busy = 0.0, 0.0
    for page in pages(count, source):
        start, began = perf_counter(), process_time()
        while crawl.writer.is_full:
            sleep(0.001)
        for url, score in page:
            crawl.queue(crawl.urls.add(url, 1, None), score)
        crawl.put(VisitRecord())
        spent, busy = spent + perf_counter() - start, busy + process_time() - began
    assert len(crawl.frontier) == count + 1
    start, began = perf_counter(), process_time()
    crawl.close("measured")
    saved = perf_counter() - start
    return {
        "insert and store links/s": count / (spent + saved),
        "  links/s of processor": count / (busy + process_time() - began),
        "resident MB, with its store": resident() - before,
        "save s": saved,
        "store MB": crawl.folder.store_path.stat().st_size / 1e6,
    }


def measure_reopening(count: int, folder: str) -> dict[str, float]:
    """Open the crawl again from its folder, and pop the first link."""
    before = resident()
    start, began = perf_counter(), process_time()
    crawl = open_crawl(plan_in(folder))
    opened, busy = perf_counter() - start, process_time() - began
    assert len(crawl.frontier) == count + 1
    result = {
        "reopen s": opened,
        "  s of processor": busy,
        "resident MB, reopened": resident() - before,
    }
    start = perf_counter()
    crawl.next(0.0)
    result["first pop s"] = perf_counter() - start
    crawl.close("measured")
    return result


def in_fresh_process(what: str, count: int, source: str, folder: str = "") -> dict[str, float]:
    command = [sys.executable, __file__, str(count), source, what, folder]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(answer.stdout)
    return result


def report(count: int, source: str = "made") -> list[str]:
    """Return one line per measure: the project's value, the naive frontier's, the ratio."""
    ours = in_fresh_process("focused", count, source)
    with tempfile.TemporaryDirectory() as folder:
        ours |= in_fresh_process("store", count, source, folder)
        ours |= in_fresh_process("reopen", count, source, folder)
    naive = in_fresh_process("naive", count, source)
    name = f"{count:,} links"
    lines = [f"{name:<38}{'focuscrawl':>12}{'naive':>12}{'ratio':>8}"]
    for name, value in ours.items():
        line = f"{name:<38}{value:>12,.2f}"
        if name in naive:
            line += f"{naive[name]:>12,.2f}{value / naive[name]:>8.2f}"
        lines.append(line)
    return lines


def test_frontier() -> None:
    print("\n" + "\n".join(report(LINKS)))


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else LINKS
    source, what, folder = (*sys.argv[2:5], "", "", "")[:3]
    if what == "store":
        print(json.dumps(measure_store(count, source, folder)))
    elif what == "reopen":
        print(json.dumps(measure_reopening(count, folder)))
    elif what:
        frontier = Naive() if what == "naive" else Focused()
        print(json.dumps(measure(frontier, count, source)))
    else:
        print("\n".join(report(count, source or "made")))


if __name__ == "__main__":
    main()
