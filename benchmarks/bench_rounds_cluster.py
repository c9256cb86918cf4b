"""A long crawl in rounds on a standalone cluster of Apache Spark on this machine.

Run: ``python benchmarks/bench_rounds_cluster.py FOLDER [--fetches N] [--round N] [--buckets N]
[--web demo:SCALE] [--alone]``; this needs PySpark and Java. The script starts a master and two
workers of one core each; with ``--alone`` one process runs without Spark. FOLDER keeps the tables,
and ``rounds.csv`` with a row per round: known URLs, processor seconds of each stage and of the
parts of tasks, and peak resident memory in MB of the driver's Python, its Java, the master, the
workers, their executors and the executors' Python processes. The same command resumes a crawl.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from replays import ROOT

from focuscrawl.crawl import CrawlConfig
from focuscrawl.rounds import RoundsPlan, crawl_in_rounds
from focuscrawl.rounds.tasks import LocalMaster

if TYPE_CHECKING:
    from focuscrawl.rounds.tasks import Master

PORT = 17_077
HOST = "127.0.0.1"
WORKERS = 2
CLASSES = "org.apache.spark.deploy"
STAGES = ("choose", "fetch", "learn", "take in", "commit")
LAPS = ("open", "crawl", "read", "join", "score", "rank", "write")
#: role of a process, by the end of a word of its command
ROLES = {
    f"{CLASSES}.SparkSubmit": "driver_java",
    f"{CLASSES}.master.Master": "master",
    f"{CLASSES}.worker.Worker": "workers",
    "CoarseGrainedExecutorBackend": "executors",
    "pyspark.daemon": "python",
}
MEMORY = ("driver", *ROLES.values())
COLUMNS = ("round", "fetched", "harvest", "known", *STAGES, *LAPS, "wall", *MEMORY)
LOOK = 1.0  # seconds between two measurements of memory


class Memory:
    """Peak resident memory of this process and its descendants, by role."""

    def __init__(self) -> None:
        self._most: dict[str, float] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            found = resident()
            with self._lock:
                for role, megabytes in found.items():
                    self._most[role] = max(megabytes, self._most.get(role, 0.0))
            time.sleep(LOOK)

    def since(self) -> dict[str, float]:
        """Return the peak since the last call in MB, summed over the processes of a role."""
        with self._lock:
            most, self._most = self._most, {}
        return most


def resident() -> dict[str, float]:
    """Return the resident memory of this process and its descendants in MB."""
    own = psutil.Process()
    found = {"driver": own.memory_info().rss / 1e6}
    for process in own.children(recursive=True):
        try:
            command = process.cmdline()
            megabytes = process.memory_info().rss / 1e6
        except psutil.NoSuchProcess:
            continue
        for word, role in ROLES.items():
            if any(each.endswith(word) for each in command):
                found[role] = found.get(role, 0.0) + megabytes
                break
    return found


def begin(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a process of Spark."""
    import pyspark  # noqa: PLC0415 - not needed with one process

    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    log = (folder / f"{arguments[0].rpartition('.')[2].lower()}-{name}.log").open("wb")
    environment = os.environ | {"SPARK_LOCAL_IP": HOST, "SPARK_WORKER_DIR": str(folder / "work")}
    environment["SPARK_DAEMON_MEMORY"] = "512m"
    command = [str(spark_class), *arguments]
    return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


@contextmanager
def cluster(folder: Path) -> Iterator[Master]:
    """Run a cluster during the ``with`` block."""
    from focuscrawl.rounds.tasks import SparkMaster  # noqa: PLC0415

    with ExitStack() as stack:

        def run(name: str, *arguments: str) -> None:
            process = stack.enter_context(begin(folder, name, *arguments))
            stack.callback(process.terminate)

        master = f"spark://{HOST}:{PORT}"
        run("0", f"{CLASSES}.master.Master", "--host", HOST, "--port", str(PORT))
        time.sleep(10)
        for n in range(WORKERS):
            run(str(n), f"{CLASSES}.worker.Worker", "--cores", "1", "--memory", "1g", master)
        yield stack.enter_context(closing(SparkMaster(master)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fetches", type=int, default=1_000_000)
    parser.add_argument("--round", type=int, default=10_000)
    parser.add_argument("--web", default="demo:6700")
    parser.add_argument("--buckets", type=int, default=8)
    parser.add_argument("--alone", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    path = given.folder / "rounds.csv"
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    crawl = CrawlConfig(
        topic="/Sports/Cycling",
        critic=str(ROOT / "models" / "demo"),
        seeds=str(ROOT / "models" / "demo" / "seeds.csv"),
        web=given.web,
        budget=given.fetches,
    )
    plan = RoundsPlan(crawl=crawl, round=given.round, buckets=given.buckets)
    began, memory = time.monotonic(), Memory()

    def tell(last: Mapping[str, Any]) -> None:
        row = {"round": last["round"], "fetched": last["fetched"], "known": last["known"]}
        row |= {"harvest": last["relevance"] / last["fetched"], "wall": time.monotonic() - began}
        row |= last["seconds"] | last["laps"] | memory.since()
        with path.open("a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, COLUMNS, restval=0).writerow(row)
        print(row, flush=True)

    with closing(LocalMaster(1)) if given.alone else cluster(given.folder) as master:
        print(crawl_in_rounds(plan, str(given.folder / "tables"), master, tell))


if __name__ == "__main__":
    main()
