"""Recall certified by target pages, compared with the true recall in simulated crawls.

Run: ``python benchmarks/bench_targets.py --out docs/research/stopping-studies.md`` (minutes, after
the recorded webs were judged). In that file, the section with the heading `HEADING` is replaced.
"""

from __future__ import annotations

import argparse
import csv
import heapq
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
from replays import KEPT, ROOT, WEBS, recording

from focuscrawl.completeness.target_recall import certified_recall, targets_needed
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.critic import load_critic
from focuscrawl.lab.judged_web import judge_web
from focuscrawl.lab.planning import load_or_train_critic
from focuscrawl.taxonomy import lies_under
from focuscrawl.webs import RecordedWeb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.lab.judged_web import JudgedWeb

TARGETS, DRAWS, ASKED = 30, 3, 0.8
OTHER_COUNTS = (14, 50, 100)  # of target pages
RECALLS = (0.25, 0.5, 0.7, 0.8, 0.9)  # true recalls at which the bound is checked
HEADING = "## Recall certified by target pages"
INTRODUCTION = f"""\
Written by `python benchmarks/bench_targets.py --out docs/research/stopping-studies.md`: best-first
crawls of the whole recording, simulated with the judgements of a naive Bayes critic. Three times,
{TARGETS} target pages are drawn from the topic's test pages: reachable pages with the topic's
label that are no start pages and no examples of the critic. On webkb, all test pages are of one
university, so target pages are drawn from all labelled pages. The true recall is the share of
fetched pages among the pages from which the target pages are drawn.

*Bound holds*: share of cases in which the true recall is at least the bound with 95 %
confidence. A case is one draw when the true recall is {", ".join(map(str, RECALLS))}, or where
`targets {ASKED}` stops the crawl. *Needed*: fetches until a true recall of {ASKED}. Topics with
fewer pages than target pages do not count.

| web, targets | topics | cases | bound holds | bound holds at the stop | recall at the stop \
| fetches / needed, median | 80 % |
|---|--:|--:|--:|--:|--:|--:|--:|"""


@dataclass(frozen=True)
class Outcome:
    """A crawl of a topic, and when it fetched the pages with the topic's label.

    Attributes
    ----------
    found : NDArray[np.int64]
        Number of the fetch of each labelled page, in increasing order.
    """

    topic: str
    found: np.ndarray

    def draws(self, count: int) -> list[np.ndarray]:
        """Return the numbers of the fetches of `count` target pages, for each draw."""
        seeds = (f"{self.topic} {draw}" for draw in range(DRAWS))
        pages = self.found.tolist()
        return [np.sort(Random(seed).sample(pages, count)) for seed in seeds]

    def recall(self, fetches: int) -> float:
        """Return the true recall after a number of fetches."""
        return float(np.searchsorted(self.found, fetches, side="right")) / len(self.found)

    def needed(self, recall: float) -> int:
        """Return the number of fetches until a true recall."""
        return int(self.found[int(np.ceil(recall * len(self.found) - 1e-9)) - 1])

    def stops(self, count: int) -> list[int]:
        """Return the fetch at which the rule stops the crawl, for each draw."""
        needed = targets_needed(count, ASKED)
        assert needed is not None
        return [int(draw[needed - 1]) for draw in self.draws(count)]

    def holds(self, count: int) -> list[bool]:
        """Return for each draw at each of `RECALLS` whether the bound holds."""
        return [
            certified_recall(int((draw <= end).sum()), count) <= self.recall(end)
            for draw in self.draws(count)
            for end in map(self.needed, RECALLS)
        ]


def labels_of(web: str) -> tuple[Path, list[tuple[str, str]]]:
    """Return the file of a web's labels, and the (url, topic) of pages that can be targets."""
    path = WEBS / web / "labels.csv"
    if web == "webkb":
        script = [sys.executable, str(ROOT / "studies" / "webkb_labels.py"), str(path)]
        made = subprocess.run(script, capture_output=True, text=True, check=True)
        path = KEPT / "webkb.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made.stdout, encoding="utf-8")
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if web == "webkb" or row["split"] == "test"]
    return path, [(row["url"], row["topic"]) for row in rows]


def fetch_order(whole: JudgedWeb, seeds: Sequence[int], topic: str) -> list[int]:
    """Return the pages in the order of a crawl that fetches links on relevant pages first."""
    relevance, seen, order = whole.relevance(topic), set[int](), list[int]()
    queue = [(-1.0, -1, page) for page in seeds]
    while queue:
        _, _, page = heapq.heappop(queue)
        if page not in seen:
            seen.add(page)
            order.append(page)
            score = -float(relevance[page])
            for target in whole.links(page):
                if target not in seen:
                    heapq.heappush(queue, (score, len(order), target))
    return order


def measure(web: str) -> list[Outcome]:
    """Simulate the crawls of all topics of a web."""
    recorded, outcomes = RecordedWeb(recording(web)), list[Outcome]()
    file, labels = labels_of(web)
    topics = dict.fromkeys(topic for _, topic in labels if topic != "/other")
    judge = load_critic(str(load_or_train_critic(str(file), recorded)), next(iter(topics)))
    whole = judge_web(recorded, judge)
    urls = recorded.resolve([url for url, _ in labels])
    placed = {url: path for url, (_, path) in zip(urls, labels, strict=True) if url is not None}
    start = WEBS / web / ("portal.txt" if web == "webkb" else "seeds.csv")
    for topic in sorted(topics):
        begin = [url for url in recorded.resolve(read_seeds(str(start), (topic,))) if url]
        order = fetch_order(whole, whole.page_indices(begin), topic)
        at = {whole.urls[page]: fetch for fetch, page in enumerate(order, 1)}
        own = {url for url, path in placed.items() if lies_under(path, [topic])}
        fetches = sorted(at[url] for url in own.difference(begin) if url in at)
        outcomes.append(Outcome(topic, np.array(fetches)))
    return outcomes


def summary(web: str, outcomes: Sequence[Outcome], count: int = TARGETS) -> str:
    """Format how often the bound held, and what the rule cost, with a number of target pages."""
    outcomes = [outcome for outcome in outcomes if len(outcome.found) >= count]
    held = [each for outcome in outcomes for each in outcome.holds(count)]
    ends = [(outcome, end) for outcome in outcomes for end in outcome.stops(count)]
    recalls = np.array([outcome.recall(end) for outcome, end in ends])
    ratios = np.array([end / outcome.needed(ASKED) for outcome, end in ends])
    reached = np.sum(recalls >= ASKED)
    cells = [f"{web}, {count}", str(len(outcomes)), str(len(held) + len(ends))]
    cells.append(f"{(sum(held) + reached) / (len(held) + len(ends)):.1%}")
    cells += [f"{reached} of {len(ends)}", f"{np.median(recalls):.2f}"]
    cells += [f"{np.median(ratios):.2f}", f"{np.quantile(ratios, 0.8):.2f}"]
    return f"| {' | '.join(cells)} |"


def topic_row(web: str, outcome: Outcome) -> str:
    """Format the row of a topic."""
    ends = outcome.stops(TARGETS)
    cells = [web, outcome.topic, f"{len(outcome.found):,}", f"{outcome.needed(ASKED):,}"]
    cells.append(", ".join(f"{end:,} ({outcome.recall(end):.2f})" for end in ends) or "-")
    return f"| {' | '.join(cells)} |"


def text(found: dict[str, list[Outcome]]) -> str:
    everything = [each for outcomes in found.values() for each in outcomes]
    lines = [HEADING, INTRODUCTION]
    lines += [summary(web, outcomes) for web, outcomes in found.items()]
    lines += [summary("all", everything, count) for count in (TARGETS, *OTHER_COUNTS)]
    lines.append("")
    lines += ["| web | topic | pages | needed | the rule stops after (at recall) |"]
    lines += ["|---|---|--:|--:|---|"]
    lines += [topic_row(web, each) for web, outcomes in found.items() for each in outcomes]
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare certified with true recall.")
    parser.add_argument("webs", nargs="*", default=["wikipedia", "webkb", "uci"])
    parser.add_argument("--out", type=Path, help="Markdown file whose section is replaced")
    options = parser.parse_args()
    found = {web: measure(web) for web in options.webs}
    print(text(found))
    if options.out is not None:
        document = options.out.read_text(encoding="utf-8")
        section = re.compile(rf"^{re.escape(HEADING)}$.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
        assert section.search(document) is not None
        new = section.sub(lambda _: f"{text(found)}\n", document)
        options.out.write_text(f"{new.rstrip()}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
