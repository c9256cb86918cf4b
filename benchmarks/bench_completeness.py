"""Estimates of recall compared with the truth in replays, and crawls stopped by these estimates.

Run: ``python benchmarks/bench_completeness.py --out docs/research/stopping-studies.md`` (hours;
finished crawls are kept). The section after its heading in that file is replaced, with a figure.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from replays import KEPT, ROOT, WEBS, critic, recording, run, seeds, topics
from stopping_rules import ENOUGH, MORE, Ending, curves, picture_of_rules

from focuscrawl.completeness.recall_estimate import ESTIMATES_FILE, read_estimates
from focuscrawl.completeness.stop_rules import StopExpression
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.critic import load_critic
from focuscrawl.lab.judged_web import judge_web
from focuscrawl.report.measures import load_pages
from focuscrawl.taxonomy import lies_under
from focuscrawl.webs import RecordedWeb

if TYPE_CHECKING:
    from focuscrawl.completeness.recall_estimate import RecallEstimate

FETCHES = {"wikipedia": 2000, "webkb": 0, "uci": 12_000}  # of a crawl; 0: to its end
QUARTERS = (0.25, 0.5, 0.75, 1.0)
NEAR, ASKED = 0.15, 0.9
HEADING = "## Measured"
CLASSES = ("course", "department", "faculty", "project", "staff", "student")

INTRODUCTION = f"""\
Written by `python benchmarks/bench_completeness.py --out docs/research/stopping-studies.md`:
replays with the apprentice and a critic trained on the web's labels. Fetches: {{lengths}}. Crawls
that `recall {ASKED}` had not stopped by then continued to the end of their frontier or recording.
The truth is every reachable page with relevance above ½.

| web | topics | within {NEAR} | mean error | within {NEAR}, by labels | interval holds \
| stops at ≥ {ENOUGH} | fetches / needed, median | 80 % | ≤ {MORE} | both |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""
LEGEND = f"""\
![Estimated against true recall](pictures/stopping.png)

Estimates are the last before a quarter, a half, three quarters and the end of these fetches. *By
labels*: error against the recall of reachable pages with the topic's label. *Stops*: where
`recall {ASKED}` stops the crawl. *Needed*: fetches until a true recall of {ASKED}, or all
fetches if the crawl was too short. A crawl that the rule does not stop (-) uses all its fetches,
and does not count in *both*. **!**: the interval does not contain the truth. In the figure each
line is a crawl, with a dot where the rule stops it."""
COMPARED = f"""\
### Other rules

The table shows other rules on the same crawls, for several values of their constant: the share of
topics stopped at a recall of {ENOUGH} or more, the median and 80 % quantile of fetches / needed,
the share within {MORE}, and the share of topics with both.

- *estimate*: estimated recall of the constant; *estimate, held*: estimated recall of {ASKED} over
  this share of the latest fetches;
- *knee*: ratio of the harvest rates before and after the knee of the curve of relevant pages
  (Cormack and Grossman, 2016); *lull*: share of the relevant pages found in the last fifth.

![Rules compared](pictures/stopping-rules.png)
"""


@dataclass(frozen=True)
class Outcome:
    """The estimates and the true recall of a crawl.

    Attributes
    ----------
    relevant : int
        Pages with relevance above 1/2 that the seeds can reach.
    found : NDArray[np.int64]
        Number of these pages after each fetch.
    labelled : NDArray[np.float64]
        Recall of reachable pages with the topic's label after each fetch.
    """

    web: str
    topic: str
    relevant: int
    found: np.ndarray
    labelled: np.ndarray
    estimates: list[RecallEstimate]

    @property
    def needed(self) -> int | None:
        """Fetches until the requested recall; None if the crawl was too short."""
        at = int(np.searchsorted(self.found, np.ceil(ASKED * self.relevant - 1e-9))) + 1
        return at if at <= len(self.found) else None

    @property
    def stopped(self) -> RecallEstimate | None:
        """Estimate at which ``stop="recall 0.9"`` stops the crawl; None if it does not stop."""
        return ended(self.estimates)

    @property
    def fetches(self) -> int:
        """Fetches until the rule stops the crawl, or all fetches."""
        return len(self.found) if self.stopped is None else self.stopped.fetched

    @property
    def ending(self) -> Ending:
        """Measures for comparing rules."""
        return Ending(
            found=self.found,
            relevant=self.relevant,
            needed=self.needed or len(self.found),
            estimates=self.estimates,
        )

    def recall(self, fetches: int) -> float:
        """Return the true recall after a number of fetches."""
        return float(self.found[fetches - 1]) / self.relevant

    def at_quarters(self) -> list[RecallEstimate]:
        """Return the last estimate before the end of each quarter of the crawl."""
        whole = min(len(self.found), FETCHES[self.web] or len(self.found))
        ends = [max(share * whole, 20) for share in QUARTERS]
        return [max((e for e in self.estimates if e.fetched <= end), key=_fetched) for end in ends]

    def holds(self, estimate: RecallEstimate) -> bool:
        low, high = estimate.interval
        return low - 1e-9 <= self.recall(estimate.fetched) <= high + 1e-9


def _fetched(estimate: RecallEstimate) -> int:
    return estimate.fetched


def ended(estimates: list[RecallEstimate]) -> RecallEstimate | None:
    """Return the estimate at which the rule stops a crawl; None if it does not stop."""
    rule = StopExpression.parse(f"recall {ASKED}")
    return next((each for each in estimates if rule.reason(each, 0.0) is not None), None)


def prepared(web: str) -> tuple[Path, Path, list[str], list[tuple[str, str]]]:
    """Return the critic, seeds, topics and labels (url, topic) of a web."""
    if web != "webkb":
        with (WEBS / web / "labels.csv").open(encoding="utf-8", newline="") as file:
            labels = [(row["url"], row["topic"]) for row in csv.DictReader(file)]
        return critic(web), seeds(web), topics(web), labels
    table, folder = KEPT / "webkb.csv", KEPT / "critics" / "webkb"
    script = [sys.executable, str(ROOT / "studies" / "webkb_labels.py")]
    made = subprocess.run(
        [*script, str(WEBS / web / "labels.csv")], capture_output=True, text=True, check=True
    )
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_text(made.stdout, encoding="utf-8")
    if not folder.exists():
        command = [str(Path(sys.executable).with_name("focuscrawl")), "critic", "train"]
        run([*command, str(table), "--web", str(recording(web)), "--out", str(folder)])
    labels = [(row["url"], row["topic"]) for row in csv.DictReader(made.stdout.splitlines())]
    return folder, WEBS / web / "portal.txt", [f"/{name}" for name in CLASSES], labels


def crawl(web: str, topic: str, given: dict[str, Path]) -> None:
    """Crawl a topic for a number of fetches, then to the end if the rule has not stopped it."""
    folder = given["crawl_dir"]
    for budget in (FETCHES[web], 0):
        arguments = {"topic": topic, "web": recording(web), "budget": budget, **given}
        named = [part for name, value in arguments.items() for part in ("-a", f"{name}={value}")]
        command = [sys.executable, "-m", "focuscrawl", "crawl", *named, "-L", "ERROR"]
        run([*command, "-s", "FOCUSCRAWL_PROGRESS=0"])
        if not budget or ended(read_estimates(folder / ESTIMATES_FILE)) is not None:
            break
    (folder / "done").touch()


def measure(web: str, kept: Path) -> list[Outcome]:
    """Crawl the remaining topics of a web; return the outcomes of all."""
    judge, start, paths, labels = prepared(web)
    recorded, outcomes = RecordedWeb(recording(web)), list[Outcome]()
    whole = judge_web(recorded, load_critic(str(judge), paths[0]))
    for topic in paths:
        folder = kept / web / topic.strip("/").replace("/", "-")
        if not (folder / "done").exists():
            crawl(web, topic, {"seeds": start, "critic": judge, "crawl_dir": folder})
        pages = load_pages(folder)
        begin = [url for url in recorded.resolve(read_seeds(str(start), (topic,))) if url]
        reach = whole.reachable(whole.page_indices(begin))
        named = {url for url, path in labels if lies_under(path, [topic])}
        wanted = {whole.urls[page] for page in reach} & {
            u for u in recorded.resolve([*named]) if u
        }
        outcomes.append(
            Outcome(
                web,
                topic,
                int((whole.relevance(topic)[reach] > 0.5).sum()),
                np.cumsum(pages["relevance"].to_numpy() > 0.5),
                np.cumsum(pages["url"].isin(wanted).to_numpy()) / max(len(wanted), 1),
                [
                    each
                    for each in read_estimates(folder / ESTIMATES_FILE)
                    if each.fetched <= len(pages)
                ],
            )
        )
    return outcomes


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Format a row per topic: truth, estimate and interval at each quarter, and the stop."""
    heads = [f"{share:.0%}: true, estimate" for share in QUARTERS]
    lines = [
        "| topic | relevant | fetches | "
        + " | ".join(heads)
        + " | stops after | at recall | needed |"
    ]
    lines.append("|---|--:|--:|" + "---|" * len(QUARTERS) + "--:|--:|--:|")
    for each in outcomes:
        cells = []
        for made in each.at_quarters():
            low, high = made.interval
            true, mark = each.recall(made.fetched), "" if each.holds(made) else " **!**"
            cells.append(f"{true:.2f}, {made.recall:.2f} ({low:.2f} to {high:.2f}){mark}")
        ends = "-" if each.stopped is None else f"{each.fetches:,}"
        needed = "-" if each.needed is None else f"{each.needed:,}"
        row = [each.topic, f"{each.relevant:,}", f"{len(each.found):,}", *cells]
        row += [ends, f"{each.recall(each.fetches):.2f}", needed]
        lines.append(f"| {' | '.join(row)} |")
    return lines


def summary(name: str, outcomes: Sequence[Outcome]) -> str:
    """Format how often the estimates and the rule were good enough."""
    made = [(each, estimate) for each in outcomes for estimate in each.at_quarters()]
    errors = np.array([abs(each.recall(e.fetched) - e.recall) for each, e in made])
    by_label = np.array([abs(each.labelled[e.fetched - 1] - e.recall) for each, e in made])
    held = np.mean([each.holds(e) for each, e in made])
    reached = np.array([each.recall(each.fetches) >= ENOUGH for each in outcomes])
    # a lower bound for crawls that were too short
    more = np.array([e.fetches / (e.needed or len(e.found)) for e in outcomes])
    cells = [name, str(len(outcomes)), f"{np.mean(errors <= NEAR):.0%}", f"{errors.mean():.3f}"]
    cells += [f"{np.mean(by_label <= NEAR):.0%}", f"{held:.0%}", f"{reached.mean():.0%}"]
    cells += [f"{np.median(more):.2f}", f"{np.quantile(more, 0.8):.2f}"]
    cells.append(f"{np.mean(more <= MORE):.0%}")
    by_itself = np.array([each.stopped is not None for each in outcomes])
    cells.append(f"{np.mean(by_itself & reached & (more <= MORE)):.0%}")
    return f"| {' | '.join(cells)} |"


def picture(found: dict[str, list[Outcome]]) -> Figure:
    """Draw estimated against true recall for each crawl; dots show where ``recall 0.9`` stops."""
    figure = Figure(figsize=(4 * len(found), 4), layout="constrained")
    plots = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for plot, (name, outcomes) in zip(plots, found.items(), strict=True):
        plot.fill_between([0, 1], [-NEAR, 1 - NEAR], [NEAR, 1 + NEAR], color="0.93", lw=0)
        plot.plot([0, 1], [0, 1], color="0.6", lw=0.8)
        for each in outcomes:
            true = [each.recall(e.fetched) for e in each.estimates]
            (line,) = plot.plot(true, [e.recall for e in each.estimates], lw=0.9, alpha=0.8)
            if (end := each.stopped) is not None:
                plot.plot(each.recall(end.fetched), end.recall, "o", ms=5, color=line.get_color())
        plot.set(title=name, xlabel="true recall", xlim=(0, 1.02), ylim=(0, 1.02))
    plots[0].set_ylabel("estimated recall")
    return figure


def everything(found: dict[str, list[Outcome]]) -> list[Outcome]:
    return [each for outcomes in found.values() for each in outcomes]


def text(found: dict[str, list[Outcome]]) -> str:
    lengths = ", ".join(f"{web} {n:,}" if n else f"{web} to its end" for web, n in FETCHES.items())
    rows = [summary(web, outcomes) for web, outcomes in found.items()]
    rows.append(summary("all", everything(found)))
    lines = [HEADING, INTRODUCTION.format(lengths=lengths), *rows, "", LEGEND, "", COMPARED]
    lines += [*curves([each.ending for each in everything(found)]), ""]
    for web, outcomes in found.items():
        lines += [f"### {web}", "", *table(outcomes), ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare estimates of recall with the truth.")
    parser.add_argument("webs", nargs="*", default=[*FETCHES], help="recorded webs with labels")
    parser.add_argument("--out", type=Path, help="Markdown file whose last section is replaced")
    parser.add_argument("--kept", type=Path, default=KEPT / "completeness", help="crawl folder")
    options = parser.parse_args()
    found = {web: measure(web, options.kept) for web in options.webs}
    print(text(found))
    if options.out is not None:
        before = options.out.read_text(encoding="utf-8").partition(HEADING)[0]
        options.out.write_text(before + text(found), encoding="utf-8")
        pictures = options.out.parent / "pictures"
        pictures.mkdir(exist_ok=True)
        picture(found).savefig(pictures / "stopping.png", dpi=110)
        compared = picture_of_rules([each.ending for each in everything(found)])
        compared.savefig(pictures / "stopping-rules.png", dpi=110)


if __name__ == "__main__":
    main()
