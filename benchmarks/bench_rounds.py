"""What batching costs: harvest of crawls in rounds, by their size, beside that of one process.

Run: ``python benchmarks/bench_rounds.py [--sizes 1,1%,10%] [--strategies apprentice,best-first]
[--budget N] [--topics N] [--out FILE.csv] [demo] [uci] [wikipedia]``. Every crawl is made in this
process, of the critic of the web's own labels, to its budget or the end of its frontier; a row a
crawl goes to the CSV file as soon as it is over, and what is there already is not crawled again.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

from replays import ROOT, critic, recording, seeds, topics

from focuscrawl.crawl import CrawlPlan
from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.crawl.replay import replay
from focuscrawl.rounds import RoundsPlan, crawl_in_rounds
from focuscrawl.rounds.plan import size_of_round
from focuscrawl.rounds.work import Processes

ONE = "one process"


class Row(NamedTuple):
    """One crawl: mean relevance of its fetches, and what it took."""

    web: str
    topic: str
    strategy: str
    size: str
    fetched: int
    harvest: float
    seconds: float


def plan_of(web: str, topic: str, strategy: str, budget: int) -> CrawlPlan:
    where: dict[str, Any]
    if web == "demo":
        models = ROOT / "models" / "demo"
        where = {"critic": str(models), "seeds": str(models / "seeds.csv"), "web": "demo"}
    else:
        where = {"critic": str(critic(web)), "seeds": str(seeds(web)), "web": str(recording(web))}
    return CrawlPlan(topic=topic, strategy=strategy, budget=budget, **where)


def crawl(plan: CrawlPlan, size: str, folder: Path) -> tuple[int, float]:
    """Crawl in rounds of a size, or by one process; return fetches and their mean relevance."""
    if size == ONE:
        one = open_crawl(replace(plan, crawl_dir=str(folder / "one")))
        replay(one)
        return one.fetched, one.harvest_rate
    rounds = RoundsPlan(plan, size_of_round(size), buckets=2)
    last = crawl_in_rounds(rounds, str(folder / "rounds"), Processes(1), lambda _: None)
    return last["fetched"], last["relevance"] / max(last["fetched"], 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("webs", nargs="*", default=["demo"])
    parser.add_argument("--sizes", default="1%,10%")
    parser.add_argument("--strategies", default="apprentice,best-first")
    parser.add_argument("--budget", type=int, default=400)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("rounds.csv"))
    given = parser.parse_args()
    done = set()
    if given.out.exists():
        with given.out.open(encoding="utf-8", newline="") as file:
            done = {(r["web"], r["topic"], r["strategy"], r["size"]) for r in csv.DictReader(file)}
    else:
        given.out.write_text(",".join(Row._fields) + "\n", encoding="utf-8")
    for web in given.webs:
        named = ["/Sports/Cycling"] if web == "demo" else topics(web)[: given.topics]
        for topic in named:
            for strategy in given.strategies.split(","):
                for size in [ONE, *given.sizes.split(",")]:
                    if (web, topic, strategy, size) in done:
                        continue
                    plan = plan_of(web, topic, strategy, given.budget)
                    began = process_time()
                    with tempfile.TemporaryDirectory() as folder:
                        fetched, harvest = crawl(plan, size, Path(folder))
                    seconds = process_time() - began
                    row = Row(web, topic, strategy, size, fetched, harvest, seconds)
                    print(*row)
                    with given.out.open("a", encoding="utf-8", newline="") as file:
                        csv.DictWriter(file, Row._fields).writerow(row._asdict())


if __name__ == "__main__":
    main()
