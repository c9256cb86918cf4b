"""The losses of the baselines on every labelled topic, as a table.

Run: ``python benchmarks/topics.py uci wikipedia --out docs/best-first.md``. Crawls that are done
are kept in the cache folder and not repeated; ``--again`` repeats them all.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from replays import KEPT, ROOT, focused, run, seeds, topics
from whole_web import seed_pages, whole_web

from focuscrawl.crawl import CrawlFolder
from focuscrawl.report.measures import load_pages

STRATEGIES = ("breadth-first", "random", "hard-focus", "best-first")
MOST = 1000  # fetches
SHARE = 0.6  # of the relevant pages within reach (METHODS 1)


@dataclass(frozen=True)
class Topic:
    """One row of the table before it is crawled."""

    web: str
    path: str
    relevant: int
    budget: int
    oracle: float

    def crawl_dir(self, strategy: str) -> Path:
        slug = self.path.strip("/").replace("/", "-")
        return KEPT / "topics" / self.web / f"{slug}-{strategy}-{self.budget}"

    def loss(self, strategy: str) -> tuple[float, int]:
        """Loss rate after the budget, and fetches made: a frontier can run empty before."""
        relevance = load_pages(self.crawl_dir(strategy))["relevance"]
        return 1.0 - float(relevance.mean()), len(relevance)


def plan(name: str) -> list[Topic]:
    """Find each topic's budget: what its seeds can reach decides."""
    web = whole_web(name)
    found = []
    for path in topics(name):
        start = seed_pages(web, seeds(name), path)
        relevance = web.relevance(path)
        relevant = int((relevance[web.reachable(start)] > 0.5).sum())
        budget = min(MOST, round(SHARE * relevant))
        found.append(
            Topic(name, path, relevant, budget, web.oracle_loss(start, relevance, budget))
        )
    return found


def crawl(topic: Topic, strategy: str) -> None:
    folder = topic.crawl_dir(strategy)
    done = folder / "done"
    if not done.exists():
        run(focused(topic.web, topic.path, strategy, topic.budget, folder))
        done.touch()
        print(f"{topic.web} {topic.path} {strategy}: {topic.loss(strategy)[0]:.3f}", flush=True)


def table(rows: list[Topic]) -> list[str]:
    head = ["topic", "relevant", "budget", *STRATEGIES, "oracle", "reduction", "below"]
    lines = [f"| {' | '.join(head)} |", f"|---{'|--:' * (len(head) - 2)}|---|"]
    for topic in rows:
        losses = {strategy: topic.loss(strategy) for strategy in STRATEGIES}
        shown = [
            f"{loss:.3f}" + (f" ({fetched} fetches)" if fetched < topic.budget else "")
            for loss, fetched in losses.values()
        ]
        first, best = losses["breadth-first"][0], losses["best-first"][0]
        cells = [topic.path, f"{topic.relevant:,}", f"{topic.budget:,}", *shown]
        verdict = "yes" if best < first else "**no**"
        cells += [f"{topic.oracle:.3f}", f"{1 - best / first:+.0%}", verdict]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def summary(rows: list[Topic]) -> str:
    losses = np.array([[topic.loss(s)[0] for s in STRATEGIES] for topic in rows])
    below = int((losses[:, -1] < losses[:, 0]).sum())
    medians = ", ".join(
        f"{name} {loss:.3f}" for name, loss in zip(STRATEGIES, np.median(losses, axis=0))
    )
    return f"Best-first is below breadth-first on {below} of {len(rows)}. Median loss: {medians}."


def main() -> None:
    parser = argparse.ArgumentParser(description="Losses of the baselines, topic by topic.")
    parser.add_argument("webs", nargs="+", help="recorded webs with labels and seeds")
    parser.add_argument("--out", type=Path, help="Markdown file to write between its marks")
    parser.add_argument("--again", action="store_true", help="repeat crawls that are done")
    options = parser.parse_args()
    found = {name: plan(name) for name in options.webs}
    todo = [(t, s) for rows in found.values() for t in rows for s in STRATEGIES]
    if options.again:
        for topic, strategy in todo:
            shutil.rmtree(topic.crawl_dir(strategy), ignore_errors=True)
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(lambda job: crawl(*job), todo):
            pass
    text = "\n".join(
        line
        for name, rows in found.items()
        for line in (f"## {name}", "", *table(rows), "", summary(rows), "")
    )
    print(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
