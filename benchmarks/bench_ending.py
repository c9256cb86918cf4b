"""Time to close and to read back a crawl with many queued links.

Run: ``python benchmarks/bench_ending.py [--links N]``, or with pytest. After a signal to stop, a
crawl finishes its requests and calls `Crawl.close`, which writes the scores that the learner has
changed. The benchmark then reads the frontier back and compares the scores.
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import closing
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from focuscrawl.crawl import CrawlConfig, open_crawl
from focuscrawl.report.status import Status, open_store
from focuscrawl.store import VisitRecord

LIMIT = 30.0  # seconds that a supervisor waits
_BATCH = 1_000  # links of a record
_PLAN = CrawlConfig(topic="/Sports/Cycling", web="demo", budget=0, seeds="")


def measure(links: int, folder: Path) -> dict[str, float]:
    """Return the seconds of each step."""
    plan = CrawlConfig(**{**_PLAN.__dict__, "crawl_dir": str(folder)})
    crawl = open_crawl(plan)
    rng = np.random.default_rng(0)
    for start in range(0, links, _BATCH):
        for i, score in enumerate(rng.random(_BATCH).tolist(), start):
            crawl.queue(crawl.urls.add(f"http://h{i % 10_000}.example/p/{i}", 1, None), score)
        crawl.put(VisitRecord())
    seconds = {}
    with closing(open_store(folder)) as store:
        known = -1
        while known < links:  # the writer has caught up
            known = Status.of(store).waiting
        began = perf_counter()
        Status.of(store)
        seconds["status"] = perf_counter() - began
    urls = np.arange(links)
    crawl.frontier.rescore(urls, rng.random(links))
    expected = np.sort([crawl.frontier.score(i) for i in range(links)])
    began, used = perf_counter(), process_time()
    crawl.close("interrupted")
    seconds["close"] = perf_counter() - began
    seconds["close, processor"] = process_time() - used
    began = perf_counter()
    again = open_crawl(plan)
    seconds["open again"] = perf_counter() - began
    assert np.array_equal(np.sort(again.urls.queued()[2]), expected)
    again.close("interrupted")
    return seconds


def test_a_crawl_ends_in_time(tmp_path: Path) -> None:
    seconds = measure(200_000, tmp_path / "crawl")
    print(seconds)
    assert seconds["close, processor"] * 5 < LIMIT  # for a million links


def main() -> None:
    """Print the seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, default=1_000_000)
    links = parser.parse_args().links
    with tempfile.TemporaryDirectory() as folder:
        for what, seconds in measure(links, Path(folder, "crawl")).items():
            print(f"{what:20}{seconds:8.2f} s")


if __name__ == "__main__":
    main()
