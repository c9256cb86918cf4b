"""Pages per second of crawls that extract the text of relevant pages, and of those that do not.

Run: ``python benchmarks/bench_crawl_text.py [--web wikipedia] [--strategy S] [--budget N]
[--pairs N] [--extractor E]``, or with pytest. Crawls run alternately in processes of their own,
each pair on another topic. The result is the median of the ratios of pairs.

Pages per second are measured from the first fetch to the last, by wall-clock time, and by the
processor time of the crawl's own process, as on two idle cores. "Whole" is the time of the
process until all texts are extracted. "CPU" is the user time of the crawl and its extractors.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter

import pyarrow.parquet as pq
import pytest
from crawl_clock import with_clock
from replays import ROOT, available, focused, topics

PAIRS = 4
BUDGET = 400
LEAST = 0.85


@dataclass(frozen=True)
class Speed:
    """One crawl: pages fetched, seconds of each kind, texts."""

    pages: int
    seconds: float
    own: float
    whole: float
    cpu: float
    texts: int

    @property
    def rate(self) -> float:
        return (self.pages - 1) / self.seconds

    @property
    def own_rate(self) -> float:
        return (self.pages - 1) / self.own

    def __str__(self) -> str:
        return (
            f"{self.rate:6.1f} pages/s, {self.own_rate:6.1f} a second of its processor; "
            f"whole {self.whole:6.1f} s, CPU {self.cpu:5.1f} s, {self.texts:4} texts"
        )


def crawl(web: str, topic: str, strategy: str, budget: int, *options: str) -> Speed:
    with tempfile.TemporaryDirectory() as name:
        folder, feed, times = (Path(name) / part for part in ("crawl", "pages.parquet", "times"))
        command = [*focused(web, topic, strategy, budget, folder), "-O", str(feed), *options]
        path = os.pathsep.join((str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")))
        cpu, start = getrusage(RUSAGE_CHILDREN).ru_utime, perf_counter()
        subprocess.run(
            [*command, *with_clock(times)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": path},
            check=True,
            capture_output=True,
        )
        whole, spent = perf_counter() - start, getrusage(RUSAGE_CHILDREN).ru_utime - cpu
        seconds, own = json.loads(times.read_text())
        table = pq.read_table(feed)
        texts = sum(table["text"].is_valid().to_pylist()) if options else 0
        return Speed(table.num_rows, seconds, own, whole, spent, texts)


def compare(web: str, strategy: str, budget: int, pairs: int, extractor: str) -> float:
    """Crawl `pairs` times with and without texts; print all, and return the median ratio."""
    done: list[tuple[Speed, Speed]] = []
    found = topics(web)
    options = ("-s", "FOCUSCRAWL_TEXT=1", "-s", f"FOCUSCRAWL_TEXT_EXTRACTOR={extractor}")
    for pair in range(pairs):
        topic = found[pair * len(found) // pairs]
        kinds = [(), options] if pair % 2 else [options, ()]
        speeds = {len(kind): crawl(web, topic, strategy, budget, *kind) for kind in kinds}
        plain, taking = speeds[0], speeds[len(options)]
        done.append((plain, taking))
        print(f"{web} {topic}\n  without {plain}\n  with    {taking}", flush=True)
    print(f"{web}, {strategy}, {extractor}: pages/s with texts relative to without")
    for what, ratios in {
        "by the clock": [taking.rate / plain.rate for plain, taking in done],
        "by the crawl's processor": [taking.own_rate / plain.own_rate for plain, taking in done],
        "whole": [plain.whole / taking.whole for plain, taking in done],
    }.items():
        print(f"  {what}: {median(ratios):.2f} ({', '.join(f'{each:.2f}' for each in ratios)})")
    return median(taking.rate / plain.rate for plain, taking in done)


def test_text_while_crawling() -> None:
    if not available("wikipedia"):
        pytest.skip("no recorded web wikipedia")
    print()
    assert compare("wikipedia", "best-first", BUDGET, PAIRS, "trafilatura") >= LEAST


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare crawls with and without texts.")
    parser.add_argument("--web", default="wikipedia")
    parser.add_argument("--strategy", default="best-first")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--extractor", default="trafilatura")
    given = parser.parse_args()
    compare(given.web, given.strategy, given.budget, given.pairs, given.extractor)


if __name__ == "__main__":
    main()
