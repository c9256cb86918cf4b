"""Recall certified by target pages, compared with the true recall in replays.

Run: ``python benchmarks/bench_targets.py --out docs/research/stopping-studies.md`` (hours;
finished crawls are kept). In that file, the section with the heading `HEADING` is replaced.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from bench_completeness import prepared
from replays import KEPT, WEBS, recording, run

from focuscrawl.completeness.recall_estimate import certified_recall, targets_needed
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.critic import load_critic
from focuscrawl.lab.judged_web import judge_web
from focuscrawl.report.measures import load_pages
from focuscrawl.taxonomy import lies_under
from focuscrawl.webs import RecordedWeb

TARGETS, DRAWS, ASKED = 30, 3, 0.8
OTHER_COUNTS = (14, 50, 100)  # of target pages
RECALLS = (0.25, 0.5, 0.7, 0.8, 0.9)  # true recalls at which the bound is checked
FETCHES = {"wikipedia": 4000, "webkb": 0, "uci": 20_000}  # of a crawl; 0: to its end
NEVER = np.iinfo(np.int64).max  # fetch of a page that the crawl did not fetch
HEADING = "## Recall certified by target pages"
INTRODUCTION = f"""\
Written by `python benchmarks/bench_targets.py --out docs/research/stopping-studies.md`: replays
with the apprentice and a critic trained on the web's labels. Fetches: {{lengths}}. Three times,
{TARGETS} target pages are drawn from the topic's test pages: reachable pages with the topic's
label that are no start pages and no examples of the critic. On webkb, all test pages are of one
university, so target pages are drawn from all labelled pages. The true recall is the share of
fetched pages among the pages from which the target pages are drawn.

*Bound holds*: share of cases in which the true recall is at least the bound with 95 %
confidence. A case is one draw when the true recall is {", ".join(map(str, RECALLS))}, or where
`targets {ASKED}` stops the crawl. *Needed*: fetches until a true recall of {ASKED}. Topics with
fewer pages than target pages do not count. A crawl that ended before the rule applied (-) counts
only in *bound holds*.

| web, targets | topics | cases | bound holds | bound holds at the stop | recall at the stop \
| fetches / needed, median | 80 % |
|---|--:|--:|--:|--:|--:|--:|--:|"""


@dataclass(frozen=True)
class Outcome:
    """A crawl of a topic, and when it fetched the pages with the topic's label.

    Attributes
    ----------
    found : NDArray[np.int64]
        Number of the fetch of each labelled page, in increasing order; `NEVER` for pages that
        the crawl did not fetch.
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
            if end != NEVER
        ]


def fetch_order(web: str, topic: str, seeds: Path, judge: Path) -> list[str]:
    """Return the URLs in the order of a crawl with the apprentice, which is kept."""
    folder = KEPT / "targets" / web / topic.strip("/").replace("/", "-")
    if not (folder / "done").exists():
        arguments = {"topic": topic, "web": recording(web), "seeds": seeds, "critic": judge}
        arguments |= {"budget": FETCHES[web], "crawl_dir": folder}
        given = [part for name, value in arguments.items() for part in ("-a", f"{name}={value}")]
        crawl = [sys.executable, "-m", "focuscrawl", "crawl", *given, "-L", "ERROR"]
        run([*crawl, "-s", "FOCUSCRAWL_PROGRESS=0"])
        (folder / "done").touch()
    return [*load_pages(folder)["url"]]


def target_labels(web: str) -> list[tuple[str, str]]:
    """Return the (url, topic) of pages that can be targets."""
    path = KEPT / "webkb.csv" if web == "webkb" else WEBS / web / "labels.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if web == "webkb" or row["split"] == "test"]
    return [(row["url"], row["topic"]) for row in rows]


def measure(web: str) -> list[Outcome]:
    """Crawl the remaining topics of a web; return the outcomes of all."""
    judge, start, topics, _ = prepared(web)
    recorded, outcomes = RecordedWeb(recording(web)), list[Outcome]()
    whole = judge_web(recorded, load_critic(str(judge), topics[0]))
    labels = target_labels(web)
    urls = recorded.resolve([url for url, _ in labels])
    placed = {url: path for url, (_, path) in zip(urls, labels, strict=True) if url is not None}
    for topic in sorted(topics):
        at = {url: fetch for fetch, url in enumerate(fetch_order(web, topic, start, judge), 1)}
        begin = [url for url in recorded.resolve(read_seeds(str(start), (topic,))) if url]
        reach = {whole.urls[page] for page in whole.reachable(whole.page_indices(begin))}
        own = {url for url, path in placed.items() if lies_under(path, [topic])}
        fetches = sorted(at.get(url, NEVER) for url in own.intersection(reach).difference(begin))
        outcomes.append(Outcome(topic, np.array(fetches)))
    return outcomes


def summary(web: str, outcomes: Sequence[Outcome], count: int = TARGETS) -> str:
    """Format how often the bound held, and what the rule cost, with a number of target pages."""
    outcomes = [outcome for outcome in outcomes if len(outcome.found) >= count]
    held = [each for outcome in outcomes for each in outcome.holds(count)]
    ends = [(each, end) for each in outcomes for end in each.stops(count) if end != NEVER]
    recalls = np.array([outcome.recall(end) for outcome, end in ends])
    needed = [(each.needed(ASKED), end) for each, end in ends]
    ratios = np.array([end / enough for enough, end in needed if enough != NEVER])
    reached = np.sum(recalls >= ASKED)
    cells = [f"{web}, {count}", str(len(outcomes)), str(len(held) + len(ends))]
    cells.append(f"{(sum(held) + reached) / (len(held) + len(ends)):.1%}")
    cells += [f"{reached} of {len(ends)}", f"{np.median(recalls):.2f}"]
    cells += [f"{np.median(ratios):.2f}", f"{np.quantile(ratios, 0.8):.2f}"]
    return f"| {' | '.join(cells)} |"


def topic_row(web: str, outcome: Outcome) -> str:
    """Format the row of a topic."""
    ends, needed = outcome.stops(TARGETS), outcome.needed(ASKED)
    cells = [web, outcome.topic, f"{len(outcome.found):,}"]
    cells.append("-" if needed == NEVER else f"{needed:,}")
    stops = ["-" if end == NEVER else f"{end:,} ({outcome.recall(end):.2f})" for end in ends]
    cells.append(", ".join(stops))
    return f"| {' | '.join(cells)} |"


def text(found: dict[str, list[Outcome]]) -> str:
    everything = [each for outcomes in found.values() for each in outcomes]
    lengths = ", ".join(
        f"{web} {FETCHES[web]:,}" if FETCHES[web] else f"{web} to its end" for web in found
    )
    lines = [HEADING, INTRODUCTION.format(lengths=lengths)]
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
