"""Pages a second of a crawl that takes the text of relevant pages, against one that does not.

Run: ``python benchmarks/bench_crawl_text.py [--web wikipedia] [--strategy S] [--budget N]
[--pairs N] [--extractor E]``, or with pytest. One process a crawl, the two by turns, another topic
a pair: the ratio of each pair counts, and the median of the pairs.

In the crawl: from the first fetch to the last. Whole: the process, with the texts that are taken
when the last page is there. CPU: user seconds of the crawl and of what takes its texts.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter

import pyarrow.parquet as pq
import pytest
from replays import ROOT, available, focused, topics

from focuscrawl.report.measures import load_pages

PAIRS = 4
BUDGET = 400
LEAST = 0.85


@dataclass(frozen=True)
class Speed:
    """One crawl: pages fetched, seconds in the crawl, whole and of the processors, texts."""

    pages: int
    seconds: float
    whole: float
    cpu: float
    texts: int

    @property
    def rate(self) -> float:
        return (self.pages - 1) / self.seconds

    def __str__(self) -> str:
        return (
            f"{self.rate:6.1f} pages/s, whole {self.whole:6.1f} s, CPU {self.cpu:6.1f} s, "
            f"{self.texts:4} texts"
        )


def crawl(web: str, topic: str, strategy: str, budget: int, *options: str) -> Speed:
    with tempfile.TemporaryDirectory() as name:
        folder, feed = Path(name) / "crawl", Path(name) / "pages.parquet"
        command = [*focused(web, topic, strategy, budget, folder), "-O", str(feed), *options]
        cpu, start = getrusage(RUSAGE_CHILDREN).ru_utime, perf_counter()
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        whole, spent = perf_counter() - start, getrusage(RUSAGE_CHILDREN).ru_utime - cpu
        times = load_pages(str(folder))["fetched_at"]
        seconds = (times.iloc[-1] - times.iloc[0]).total_seconds()
        table = pq.read_table(feed)
        texts = sum(table["text"].is_valid().to_pylist()) if options else 0
        return Speed(len(times), seconds, whole, spent, texts)


def compare(web: str, strategy: str, budget: int, pairs: int, extractor: str) -> float:
    """Crawl `pairs` times with and without; print all, return the median ratio."""
    ratios, wholes = [], []
    found = topics(web)
    options = ("-s", "FOCUSCRAWL_TEXT=1", "-s", f"FOCUSCRAWL_TEXT_EXTRACTOR={extractor}")
    for pair in range(pairs):
        topic = found[pair * len(found) // pairs]
        if pair % 2:
            taking, plain = (
                crawl(web, topic, strategy, budget, *given) for given in (options, ())
            )
        else:
            plain, taking = (
                crawl(web, topic, strategy, budget, *given) for given in ((), options)
            )
        ratios.append(taking.rate / plain.rate)
        wholes.append(plain.whole / taking.whole)
        print(f"{web} {topic}\n  without {plain}\n  with    {taking}", flush=True)
    print(
        f"{web}, {strategy}, {extractor}: {median(ratios):.2f} x the pages/s without texts "
        f"({', '.join(f'{ratio:.2f}' for ratio in ratios)}), whole {median(wholes):.2f} x",
        flush=True,
    )
    return median(ratios)


def test_text_while_crawling() -> None:
    if not available("wikipedia"):
        pytest.skip("no recorded web wikipedia")
    print()
    assert compare("wikipedia", "best-first", BUDGET, PAIRS, "trafilatura") >= LEAST


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of a crawl with texts, and without.")
    parser.add_argument("--web", default="wikipedia")
    parser.add_argument("--strategy", default="best-first")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--extractor", default="trafilatura")
    given = parser.parse_args()
    compare(given.web, given.strategy, given.budget, given.pairs, given.extractor)


if __name__ == "__main__":
    main()
