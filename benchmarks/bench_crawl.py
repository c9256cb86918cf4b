"""Pages per second of a focused crawl compared with a plain breadth-first Scrapy spider.

Run: ``python benchmarks/bench_crawl.py [--strategy S] [--budget N] [uci] [wikipedia]``, or with
pytest. Crawls run alternately in processes of their own, so that other load affects both. The
result is the median of the ratios of pairs. Every pair uses the seeds of another topic. With
``--beside flat`` the comparison is with the same crawl by a critic of that kind.

"In the crawl" is the time from the first finished fetch to the last. "Whole" is the time of the
process, with imports.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest
from replays import ROOT, available, focused, recording, seeds, topics

from focuscrawl.crawl.scope import read_seeds
from focuscrawl.report.measures import load_pages

PAIRS = 3
BUDGET = 1000


@dataclass(frozen=True)
class Speed:
    """One crawl: pages fetched, seconds of the crawl and of the process, bytes received."""

    pages: int
    seconds: float
    whole: float
    bytes: int

    @property
    def rate(self) -> float:
        return (self.pages - 1) / self.seconds

    def __str__(self) -> str:
        return (
            f"{self.rate:6.1f} pages/s ({self.pages / self.whole:5.1f} whole, "
            f"{self.bytes / self.pages / 1000:4.0f} kB a page)"
        )


def crawl_focused(
    web: str, topic: str, strategy: str, budget: int, kind: str = "discriminative"
) -> Speed:
    with tempfile.TemporaryDirectory() as name:
        command = focused(web, topic, strategy, budget, Path(name), kind=kind)
        start = perf_counter()
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        whole = perf_counter() - start
        pages = load_pages(name)
        times = pages["fetched_at"]
        seconds = (times.iloc[-1] - times.iloc[0]).total_seconds()
        return Speed(len(pages), seconds, whole, int(pages["bytes"].sum()))


def crawl_plainly(web: str, topic: str, budget: int) -> Speed:
    start_urls = ",".join(read_seeds(str(seeds(web)), (topic,)))
    given = {"web": recording(web), "seeds": start_urls, "budget": budget}
    spider = str(Path(__file__).with_name("plain_spider.py"))
    command = [sys.executable, "-m", "scrapy", "runspider", spider]
    command += [part for key, value in given.items() for part in ("-a", f"{key}={value}")]
    start = perf_counter()
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    whole = perf_counter() - start
    return Speed(whole=whole, **json.loads(done.stdout))


def compare(web: str, strategy: str, budget: int, pairs: int, beside: str | None = None) -> float:
    """Crawl `pairs` times with both; print all, and return the median ratio.

    The comparison is with the plain spider, or with a critic of the kind `beside`.
    """
    other = "the plain spider" if beside is None else f"a {beside} critic"
    ratios, wholes = [], []
    found = topics(web)
    for pair in range(pairs):
        topic = found[pair * len(found) // pairs]
        ours = crawl_focused(web, topic, strategy, budget)
        if beside is None:
            theirs = crawl_plainly(web, topic, budget)
        else:
            theirs = crawl_focused(web, topic, strategy, budget, beside)
        ratios.append(ours.rate / theirs.rate)
        wholes.append(ours.pages / ours.whole / (theirs.pages / theirs.whole))
        print(
            f"{web} {topic}\n  {strategy:<12}{ours}\n  {beside or 'plain':<12}{theirs}", flush=True
        )
    print(
        f"{web}: {strategy} at {median(ratios):.2f} x the pages/s of {other} "
        f"({', '.join(f'{ratio:.2f}' for ratio in ratios)}), whole {median(wholes):.2f} x",
        flush=True,
    )
    return median(ratios)


@pytest.mark.parametrize("web", ["uci", "wikipedia"])
def test_crawl(web: str) -> None:
    if not available(web):
        pytest.skip(f"no recorded web {web}")
    print()
    compare(web, "best-first", BUDGET, PAIRS)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare a focused crawl with a plain spider.")
    parser.add_argument("webs", nargs="*", default=["uci", "wikipedia"])
    parser.add_argument("--strategy", default="best-first")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--beside", help="kind of critic to compare with, not the plain spider")
    options = parser.parse_args()
    for web in options.webs:
        compare(web, options.strategy, options.budget, options.pairs, options.beside)


if __name__ == "__main__":
    main()
