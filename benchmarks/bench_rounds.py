"""Cost of batching: harvest rate of crawls in rounds, by the size of rounds, and in one process.

Run: ``python benchmarks/bench_rounds.py [--out rounds.csv] [--picture rounds.png] [curve] [all]``.
*curve* crawls in rounds of several sizes, with the apprentice and best-first: one topic of a
synthetic web, and every third topic of the recorded webs. *all* crawls all topics of the recorded
webs with the apprentice, in rounds of 1 %. Every crawl runs in this process, with a critic trained
on the web's labels, to its budget or the end of its frontier. The CSV file gets a row after each
crawl. Crawls in the file are not repeated, so runs can be interrupted and can share a file.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from replays import ROOT, critic, recording, seeds, topics

from focuscrawl.crawl import CrawlConfig
from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.report.figures import LineStyle, add_legend, png, single_plot
from focuscrawl.rounds import RoundsPlan, crawl_in_rounds
from focuscrawl.rounds.driver import parse_round_size
from focuscrawl.rounds.tasks import LocalMaster

ONE = "one process"
BUCKETS = 2
WEBS = ("demo:10", "uci", "wikipedia")
BUDGET = 400
SIZES = ("10%", "1%", "1")  # of a round: of the budget, or fetches
EVERY = 3  # topics of a recorded web
STRATEGIES = ("apprentice", "best-first")


class Row(NamedTuple):
    """One crawl: mean relevance of its fetches, and its cost."""

    web: str
    topic: str
    strategy: str
    round: int  # fetches; 0: one process
    budget: int
    fetched: int
    harvest: float
    seconds: float


class Case(NamedTuple):
    """A crawl to run; `Row` starts with the same fields."""

    web: str
    topic: str
    strategy: str
    round: int


def curve() -> Iterator[Case]:
    """Yield the crawls with several sizes of rounds, fast sizes first."""
    for size in (ONE, *SIZES):
        for web in WEBS:
            named = ["/Sports/Cycling"] if web.startswith("demo") else sorted(topics(web))[::EVERY]
            yield from (
                Case(web, topic, strategy, fetches_of(size))
                for topic in named
                for strategy in STRATEGIES
            )


def every_topic() -> Iterator[Case]:
    """Yield the crawls of all topics, in one process and in rounds of 1 %."""
    for web in ("uci", "wikipedia"):
        for topic in topics(web):
            for size in (ONE, "1%"):
                yield Case(web, topic, "apprentice", fetches_of(size))


def fetches_of(size: str) -> int:
    """Return the number of fetches in a round; 0 for one process."""
    if size == ONE:
        return 0
    share = parse_round_size(size)
    return max(1, int(share * BUDGET if share < 1.0 else share))


def plan_of(web: str, topic: str, strategy: str) -> CrawlConfig:
    where: dict[str, Any]
    if web.startswith("demo"):
        models = ROOT / "models" / "demo"
        where = {"critic": str(models), "seeds": str(models / "seeds.csv"), "web": web}
    else:
        where = {"critic": str(critic(web)), "seeds": str(seeds(web)), "web": str(recording(web))}
    return CrawlConfig(topic=topic, strategy=strategy, budget=BUDGET, **where)


def crawl(case: Case, folder: Path) -> Row:
    """Crawl in rounds of a size, or in one process."""
    plan, began = plan_of(*case[:3]), process_time()
    if not case.round:
        one = open_crawl(plan.with_values(crawl_dir=str(folder / "one")))
        replay(one)
        fetched, harvest = one.fetched, one.harvest_rate
    else:
        rounds = RoundsPlan(crawl=plan, round=case.round, buckets=BUCKETS)
        last = crawl_in_rounds(rounds, str(folder / "rounds"), LocalMaster(1), lambda _: None)
        fetched, harvest = last["fetched"], last["relevance"] / max(last["fetched"], 1)
    return Row(*case, plan.budget, fetched, harvest, process_time() - began)


def rows_of(path: Path) -> list[Row]:
    if not path.exists():
        path.write_text(",".join(Row._fields) + "\n", encoding="utf-8")
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(*row[:3], *map(int, row[3:6]), *map(float, row[6:]))
            for row in [*csv.reader(file)][1:]
        ]


def lost(rows: Iterable[Row]) -> Iterator[tuple[str, str, int, list[float], list[float]]]:
    """Yield web, strategy and size of rounds, with the harvests of topics and of one process."""
    harvest = {Case(*row[:4]): row.harvest for row in rows}
    found = defaultdict(list)
    for case in harvest:
        if case.round and case._replace(round=0) in harvest:
            found[case.web, case.strategy, case.round].append(case)
    for (web, strategy, size), cases in sorted(found.items()):
        ones = [harvest[case._replace(round=0)] for case in cases]
        yield web, strategy, size, [harvest[case] for case in cases], ones


def tell(rows: list[Row]) -> None:
    """Print the harvest of rounds, of one process on the same topics, and the difference."""
    print("| web | strategy | a round | topics | in rounds | one process | mean | worst topic |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for web, strategy, size, harvests, ones in lost(rows):
        gained = np.subtract(harvests, ones)
        print(
            f"| `{web}` | {strategy} | {size} | {len(ones)} | {np.mean(harvests):.3f} "
            f"| {np.mean(ones):.3f} | {gained.mean():+.3f} | {gained.min():+.3f} |"
        )


def draw(rows: list[Row], path: Path) -> None:
    """Draw the difference of rounds and one process by the share of the budget in a round."""
    chosen = {*curve()}
    points = defaultdict(list)
    for web, strategy, size, harvests, ones in lost(r for r in rows if Case(*r[:4]) in chosen):
        gained = float(np.subtract(harvests, ones).mean())
        points[web, strategy].append((100 * size / BUDGET, gained))
    with single_plot(7.0, 3.6) as (figure, plot):
        plot.axhline(0.0, color="#888888", lw=0.8)
        for (web, strategy), found in points.items():
            look = LineStyle.of(WEBS.index(web))
            dashes = LineStyle.of(STRATEGIES.index(strategy)).dashes
            shares, gains = zip(*sorted(found), strict=True)
            look.draw(plot, shares, gains, f"{web}, {strategy}", ls=dashes, marker="o", ms=4)
        plot.set(
            xscale="log",
            xlabel="fetches in a round, % of the budget",
            ylabel="difference of mean relevance to one process",
        )
        plot.xaxis.set_major_formatter("{x:g}")
        add_legend(figure, columns=3)
        path.write_bytes(png(figure))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["curve", "all"], choices=["curve", "all"])
    parser.add_argument("--out", type=Path, default=Path("rounds.csv"))
    parser.add_argument("--picture", type=Path, default=Path("rounds.png"))
    given = parser.parse_args()
    made = {"curve": curve, "all": every_topic}
    for case in dict.fromkeys(case for what in given.what for case in made[what]()):
        if case in {Case(*row[:4]) for row in rows_of(given.out)}:
            continue
        with tempfile.TemporaryDirectory() as folder:
            row = crawl(case, Path(folder))
        print(*row, flush=True)
        with given.out.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file).writerow(row)
    tell(rows_of(given.out))
    draw(rows_of(given.out), given.picture)


if __name__ == "__main__":
    main()
