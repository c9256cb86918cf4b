"""A long crawl in rounds on a standalone cluster of Apache Spark, all of it on this machine.

Run: ``python benchmarks/bench_rounds_cluster.py FOLDER [--fetches N] [--round N] [--buckets N]
[--web demo:SCALE]`` where PySpark and Java are. A master and two workers of one core each begin as
processes; FOLDER keeps the tables, and ``rounds.csv``: a row a round, with its seconds of
processor by stage, URLs known and the memory of its largest processes. The same command goes on
with what is there.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import subprocess
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from replays import ROOT

from focuscrawl.crawl import CrawlPlan
from focuscrawl.rounds import RoundsPlan, crawl_in_rounds
from focuscrawl.rounds.spark import Spark

if TYPE_CHECKING:
    from collections.abc import Mapping

PORT = 17_077
HOST = "127.0.0.1"
WORKERS = 2
CLASSES = "org.apache.spark.deploy"
COLUMNS = (
    *("round", "fetched", "harvest", "known", "fetch", "learn", "take_in", "wall"),
    *("task_megabytes", "driver_megabytes"),
)


def begin(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Begin a process of Spark's own."""
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    log = (folder / f"{arguments[0].rpartition('.')[2].lower()}-{name}.log").open("wb")
    environment = os.environ | {"SPARK_LOCAL_IP": HOST, "SPARK_WORKER_DIR": str(folder / "work")}
    environment["SPARK_DAEMON_MEMORY"] = "512m"
    command = [str(spark_class), *arguments]
    return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fetches", type=int, default=1_000_000)
    parser.add_argument("--round", type=int, default=10_000)
    parser.add_argument("--web", default="demo:6700")
    parser.add_argument("--buckets", type=int, default=8)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    rows = given.folder / "rounds.csv"
    if not rows.exists():
        rows.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    crawl = CrawlPlan(
        topic="/Sports/Cycling",
        critic=str(ROOT / "models" / "demo"),
        seeds=str(ROOT / "models" / "demo" / "seeds.csv"),
        web=given.web,
        budget=given.fetches,
    )
    plan = RoundsPlan(crawl, given.round, given.buckets)
    began = time.monotonic()

    def tell(last: Mapping[str, Any]) -> None:
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        values = [last["round"], last["fetched"], last["relevance"] / last["fetched"]]
        values += [last["known"], *last["seconds"].values(), time.monotonic() - began]
        with rows.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file).writerow([*values, last["megabytes"], own])
        print(dict(zip(COLUMNS, [*values, last["megabytes"], own], strict=True)), flush=True)

    with ExitStack() as stack:

        def run(name: str, *arguments: str) -> None:
            process = stack.enter_context(begin(given.folder, name, *arguments))
            stack.callback(process.terminate)

        master = f"spark://{HOST}:{PORT}"
        run("0", f"{CLASSES}.master.Master", "--host", HOST, "--port", str(PORT))
        time.sleep(10)
        for n in range(WORKERS):
            run(str(n), f"{CLASSES}.worker.Worker", "--cores", "1", "--memory", "1g", master)
        with closing(Spark(master)) as spark:
            print(crawl_in_rounds(plan, str(given.folder / "tables"), spark, tell))


if __name__ == "__main__":
    main()
