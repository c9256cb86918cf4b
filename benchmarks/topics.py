"""The losses of the baselines on every labelled topic, as a table.

Run: ``python benchmarks/topics.py uci wikipedia --out docs/research/best-first.md``. Crawls done
are kept in the cache folder and not repeated; ``--again`` repeats them all.
"""

from __future__ import annotations

import argparse
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from replays import KEPT, critic, focused, recording, run, seeds, topics

from focuscrawl.crawl.scope import read_seeds
from focuscrawl.critic import load_critic
from focuscrawl.lab.judged_web import judge_web
from focuscrawl.report.measures import load_pages
from focuscrawl.webs import RecordedWeb

STRATEGIES = ("breadth-first", "random", "hard-focus", "best-first")
FIRST = ("best-first", "breadth-first")  # what the table is about
MOST = 1000  # fetches
SHARE = 0.6  # of the relevant pages within reach (methods 1)
HEAD = """# Best-first against breadth-first

Every labelled topic of the recorded webs, crawled from its seeds (`seeds.csv`) with a critic of
the web's own labels. Written by `python benchmarks/topics.py {webs} --out {out}`.

Numbers under the strategies are loss rates: 1 - mean R of all fetches. *Relevant* pages have
R > 0.5 and can be reached from the seeds; *oracle* is greedy best-first on the true R of the
targets; *reduction* is of best-first's loss against breadth-first's. One draw of the seeds.

Where two strategies are equal or nearly so, the reason is ties. Naive Bayes is nearly always
sure, so all links of relevant pages have a score of 1 and are fetched in the order they were
found, which is breadth-first's. As long as links of relevant seeds fill the budget (a page of
Wikipedia has hundreds), best-first has nothing to choose by: it gains only once breadth-first
would go on to links of irrelevant pages. Hard focus fetches what best-first does until it has
no link of a page on the topic left; then it stops.

"""


@dataclass(frozen=True)
class Topic:
    """A topic of a web: what a crawl can find, and at best.

    Attributes
    ----------
    relevant : pages with R > 0.5 that the seeds can reach
    oracle : loss rate of the greedy oracle after a number of fetches
    """

    web: str
    path: str
    relevant: int
    oracle: dict[int, float]

    @property
    def share(self) -> int:
        """The budget of methods 1, at most `MOST`."""
        return min(MOST, round(SHARE * self.relevant))

    def crawl_dir(self, strategy: str) -> Path:
        slug = self.path.strip("/").replace("/", "-")
        return KEPT / "topics" / self.web / f"{slug}-{strategy}-{MOST}"

    def loss(self, strategy: str, budget: int) -> tuple[float, int]:
        """Loss rate after `budget` fetches, and fetches made: a frontier can run empty before."""
        relevance = load_pages(self.crawl_dir(strategy))["relevance"].iloc[:budget]
        return 1.0 - float(relevance.mean()), len(relevance)


def plan(name: str) -> list[Topic]:
    """Find what the seeds of each topic can reach."""
    recorded = RecordedWeb(recording(name))
    web = judge_web(recorded, load_critic(str(critic(name)), topics(name)[0]))
    found = []
    for path in topics(name):
        known = recorded.resolve(read_seeds(str(seeds(name)), (path,)))
        start = web.page_indices([url for url in known if url is not None])
        relevance = web.relevance(path)
        relevant = int((relevance[web.reachable(start)] > 0.5).sum())
        topic = Topic(name, path, relevant, {})
        for budget in (MOST, topic.share):
            topic.oracle[budget] = web.oracle_loss(start, relevance, budget)
        found.append(topic)
    return found


def crawl(topic: Topic, strategy: str) -> None:
    folder = topic.crawl_dir(strategy)
    done = folder / "done"
    if not done.exists():
        run(focused(topic.web, topic.path, strategy, MOST, folder))
        done.touch()
        print(
            f"{topic.web} {topic.path} {strategy}: {topic.loss(strategy, MOST)[0]:.3f}", flush=True
        )


def table(rows: list[Topic], budgets: list[int]) -> list[str]:
    """Losses of all strategies, one row a topic, and how often best-first wins."""
    head = ["topic", "relevant", "fetches", *STRATEGIES, "oracle", "reduction", "below"]
    lines = [f"| {' | '.join(head)} |", f"|---{'|--:' * (len(head) - 2)}|---|"]
    losses, below = [], 0
    for topic, budget in zip(rows, budgets, strict=True):
        found = [topic.loss(strategy, budget) for strategy in STRATEGIES]
        shown = [
            f"{loss:.3f}" + (f" ({fetched} fetches)" if fetched < budget else "")
            for loss, fetched in found
        ]
        first, best = found[0][0], found[-1][0]
        losses.append([loss for loss, _ in found])
        below += best < first
        cells = [topic.path, f"{topic.relevant:,}", f"{budget:,}", *shown]
        verdict = "yes" if best < first else "equal" if best == first else "**no**"
        cells += [f"{topic.oracle[budget]:.3f}", f"{1 - best / first:+.1%}", verdict]
        lines.append(f"| {' | '.join(cells)} |")
    medians = zip(STRATEGIES, np.median(losses, axis=0), strict=True)
    shown_medians = ", ".join(f"{name} {loss:.3f}" for name, loss in medians)
    verdict = f"Best-first is below breadth-first on {below} of {len(rows)}"
    return [*lines, "", f"{verdict}. Median loss: {shown_medians}.", ""]


def report(name: str, rows: list[Topic]) -> list[str]:
    lines = [f"## {name}, {MOST:,} fetches", "", *table(rows, [MOST] * len(rows))]
    shares = [topic.share for topic in rows]
    if min(shares) < MOST:
        title = f"## {name}, the first fetches: {SHARE:.0%} of the relevant pages within reach"
        lines += [title, "", *table(rows, shares)]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description="Losses of the baselines, topic by topic.")
    parser.add_argument("webs", nargs="+", help="recorded webs with labels and seeds")
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    parser.add_argument("--again", action="store_true", help="repeat crawls that are done")
    options = parser.parse_args()
    found = {name: plan(name) for name in options.webs}
    order = sorted(STRATEGIES, key=lambda strategy: strategy not in FIRST)
    todo = [(topic, s) for s in order for rows in found.values() for topic in rows]
    if options.again:
        for topic, strategy in todo:
            shutil.rmtree(topic.crawl_dir(strategy), ignore_errors=True)
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(lambda job: crawl(*job), todo):
            pass
    text = HEAD.format(webs=" ".join(options.webs), out=options.out or "FILE")
    text += "\n".join(line for name, rows in found.items() for line in report(name, rows))
    print(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
