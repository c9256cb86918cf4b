"""A crawl of several workers over real sockets, two of which are killed on the way.

Run: ``python benchmarks/bench_sockets.py [--pages N] [--out FOLDER]``. It starts the hosts of
`generated_web`, a PostgreSQL of its own, and two processes of ``scrapy crawl focused``, each kept
to a core. After a third of the pages the first worker is killed (SIGKILL) and started again, after
two thirds the second one. At the end what the store holds is compared with what the hosts were
asked for and with what their pages are. ``samples.csv`` in the folder has a line every second.
"""

from __future__ import annotations

import csv
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
import psutil
import psycopg
from generated_web import TOPIC, GeneratedWeb

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from integration.postgres import PostgresServer
from integration.workers import Workers, assert_whole, query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SHARE = 1.5  # pages of the web to pages of the budget
EVERY = 1.0  # seconds between two looks
LATE = 1.0  # seconds that a request may have lain there before a host noted it
SAMPLE = 2000  # pages whose links are compared
PARTS = 10  # of the crawl, a line of the table each
STARTS = 8
LIVE = (
    "DOWNLOAD_DELAY=0",
    "AUTOTHROTTLE_ENABLED=0",
    "FOCUSCRAWL_PRIVATE_ADDRESSES=127.0.0.0/8",
    "FOCUSCRAWL_WARC=0",
)


class Sample(NamedTuple):
    """How the crawl stands at a moment; seconds of processor since the start of each process."""

    at: float
    pages: int
    known: int
    on_disk: int
    server: float
    web: float
    workers: dict[int, tuple[int, float]]  # by process: resident bytes, processor


@dataclass
class Kill:
    """A worker that was killed, and the one that was started in its place."""

    at: float
    pages: int
    victim: str
    successor: str


@dataclass
class Watched:
    """What was seen while the crawl ran."""

    samples: list[Sample] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)


@click.command()
@click.option("--pages", default=1_000_000, show_default=True)
@click.option("--strategy", default="best-first", show_default=True)
@click.option("--lease", default=60, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="For logs and samples.")
def main(*, pages: int, strategy: str, lease: int, out: Path | None) -> None:
    """Crawl so many pages, kill workers, and compare."""
    with PostgresServer() as server, tempfile.TemporaryDirectory() as scratch:
        folder = out or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        url = server.url("sockets")
        web = GeneratedWeb.of(int(SHARE * pages), _free_port())
        arguments = {
            "critic": "models/demo",
            "topic": TOPIC,
            "seeds": ",".join(web.url(number) for number in range(STARTS)),
            "strategy": strategy,
            "budget": pages,
        }
        options = [part for each in (*LIVE, f"FOCUSCRAWL_LEASE={lease}") for part in ("-s", each)]
        with (
            _served(web, folder / "asked.npz") as served,
            Workers(url, folder, arguments, *options) as workers,
        ):
            watched = _run(workers, pages, server, served)
            codes = workers.wait(60.0)
        _figures(url, watched, pages)
        _check_codes(codes, watched, workers)
        _check(url, web, watched, pages, folder / "asked.npz")


def _run(workers: Workers, pages: int, server: PostgresServer, web: psutil.Process) -> Watched:
    """Crawl to the end; kill workers on the way."""
    watched = Watched()
    cores = sorted(os.sched_getaffinity(0))
    for number in range(2):
        os.sched_setaffinity(workers.start().pid, {cores[number % len(cores)]})
    with (workers.folder / "samples.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(Sample._fields)
        while any(each.poll() is None for each in workers.processes):
            time.sleep(EVERY)
            sample = _look(workers, server, web)
            if sample is None:
                continue
            watched.samples.append(sample)
            table.writerow(sample)
            file.flush()
            killed = len(watched.kills)
            if killed < 2 and sample.pages >= (1 + killed) * pages // 3:
                watched.kills.append(_replace(workers, killed, sample.pages, cores))
    return watched


def _replace(workers: Workers, number: int, pages: int, cores: list[int]) -> Kill:
    """Kill a worker, and start one on its core."""
    victim = workers.processes[number]
    workers.kill(number)
    at = time.time()
    successor = workers.start()
    os.sched_setaffinity(successor.pid, {cores[number % len(cores)]})
    click.echo(f"{_clock(at)} {pages:,} pages: kill -9 of worker {victim.pid}, one more starts")
    return Kill(at, pages, _name(victim.pid), _name(successor.pid))


def _look(workers: Workers, server: PostgresServer, web: psutil.Process) -> Sample | None:
    """Return how the crawl stands; None: it has not begun."""
    try:
        ((pages, known, on_disk),) = query(
            workers.url,
            "SELECT fetched, (SELECT reltuples::bigint FROM pg_class WHERE oid = 'url'::regclass),"
            " pg_database_size(current_database()) FROM crawl",
        )
    except psycopg.Error:  # the tables are not there yet
        return None
    found: dict[int, tuple[int, float]] = {}
    for process in workers.processes:
        with suppress(psutil.NoSuchProcess):
            each = psutil.Process(process.pid)
            if each.status() != psutil.STATUS_ZOMBIE:
                found[each.pid] = each.memory_info().rss, sum(each.cpu_times()[:2])
    spent = sum(web.cpu_times()[:2])
    return Sample(time.time(), pages, known, on_disk, server.processor(), spent, found)


def _figures(url: str, watched: Watched, pages: int) -> None:
    """Print the course of the crawl, what it takes on disk, and what became of the kills."""
    click.echo(
        "pages | pages/s | ms a page: workers, PostgreSQL, hosts | "
        "MB resident, each worker at most | harvest | MB on disk"
    )
    at, relevance = _pages(url)
    harvest = [float(part.mean()) for part in np.array_split(relevance, PARTS)]
    last = Sample(at[0], 0, 0, 0, 0.0, 0.0, {})
    for part in range(1, PARTS + 1):
        within = [s for s in watched.samples if last.pages < s.pages <= part * pages // PARTS]
        if not within:
            continue
        now = within[-1]
        n, seconds = now.pages - last.pages, now.at - last.at
        spent = [_spent(before, after) for before, after in pairwise([last, *within])]
        resident: dict[int, int] = {}
        for each in within:
            for pid, (bytes_, _) in each.workers.items():
                resident[pid] = max(resident.get(pid, 0), bytes_)
        click.echo(
            f"{now.pages:9,} | {n / seconds:6.1f} | {1e3 * sum(spent) / n:.2f}, "
            f"{1e3 * (now.server - last.server) / n:.2f}, {1e3 * (now.web - last.web) / n:.2f} | "
            f"{', '.join(f'{each / 1e6:.0f}' for each in resident.values())} | "
            f"{harvest[part - 1]:.3f} | {now.on_disk / 1e6:.0f}"
        )
        last = now
    click.echo(
        f"{pages:,} pages in {(at[-1] - at[0]) / 60:.1f} minutes: "
        f"{(pages - 1) / (at[-1] - at[0]):.1f} pages/s"
    )
    sizes = query(
        url,
        "SELECT relname, pg_total_relation_size(oid) / 1e6, reltuples::bigint FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = 'sockets'::regnamespace ORDER BY 2 DESC LIMIT 6",
    )
    click.echo("on disk: " + ", ".join(f"{n} {size:.0f} MB ({r:,} rows)" for n, size, r in sizes))
    for row in query(
        url, "SELECT id, name, state, fetched, batch, queued FROM worker ORDER BY id"
    ):
        click.echo("  worker {} ({}): {}, {} pages in {} transactions, {} queued".format(*row))
    for kill in watched.kills:
        _tell(url, kill, at)


def _tell(url: str, kill: Kill, at: NDArray[np.float64]) -> None:
    """Print what became of a kill."""
    ((joined, first),) = query(
        url,
        "SELECT extract(epoch FROM joined_at), (SELECT min(fetched_at) FROM page"
        f" WHERE worker = id) FROM worker WHERE name = '{kill.successor}'",
    )
    moved = query(
        url,
        "SELECT w.name, count(*), max(extract(epoch FROM taken_at)) FROM lease l "
        f"JOIN worker w ON w.id = l.worker WHERE taken_at > to_timestamp({kill.at}) "
        f"AND taken_at < to_timestamp({kill.at}) + interval '5 min' GROUP BY 1",
    )
    click.echo(
        f"killed after {kill.pages:,} pages: the next one joined after "
        f"{float(joined) - kill.at:.1f} s, its first page came after "
        f"{_epoch(first) - kill.at:.1f} s"
    )
    for name, shards, last in moved:
        click.echo(f"  {name} got {shards} shards, the last after {float(last) - kill.at:.1f} s")
    rates = [
        f"{((at >= kill.at + start) & (at < kill.at + start + 30)).sum() / 30:.0f}"
        for start in (-30, 0, 30, 60, 90, 120, 150, 180)
    ]
    click.echo(f"  pages/s of 30 s, from 30 s before on: {', '.join(rates)}")


def _check_codes(codes: list[int], watched: Watched, workers: Workers) -> None:
    for number, code in enumerate(codes):
        said = Counter(
            level
            for level in ("WARNING", "ERROR", "CRITICAL", "Traceback")
            for line in workers.log(number).splitlines()
            if level in line
        )
        click.echo(f"process {number}: exit code {code}; lines: {dict(said)}")
    killed = len(watched.kills)
    expected = [-signal.SIGKILL] * killed + [0] * (len(codes) - killed)
    assert codes == expected, codes


def _check(url: str, web: GeneratedWeb, watched: Watched, pages: int, asked: Path) -> None:
    """Compare the store with the requests and with the pages."""
    assert_whole(url, pages)
    click.echo("budget exact, no URL twice, no link lost, no host asked by who did not hold it")
    statuses = query(url, "SELECT status, error, count(*) FROM page GROUP BY 1, 2")
    click.echo(f"statuses: {statuses}")
    recorded = np.array([_number(web, row[0]) for row in query(url, _RECORDED)])
    with np.load(asked) as arrays:
        first, again, (robots, absent, connections) = (
            arrays["first"],
            arrays["again"],
            arrays["others"],
        )
    assert (first[recorded] > 0).all(), "recorded, but never asked for"
    n = int((first > 0).sum())
    click.echo(
        f"hosts: {n:,} pages asked for, {n - pages:,} of them not recorded; "
        f"{len(again)} asked for again; robots.txt {robots} times; {absent} that do not exist; "
        f"{connections:,} connections"
    )
    for kill in watched.kills:
        at = kill.at + LATE
        before = again[(first[again[:, 0].astype(np.int64)] <= at) & (again[:, 1] > kill.at)]
        again = again[~np.isin(again[:, 0], before[:, 0])]
        longest = (kill.at - first[before[:, 0].astype(np.int64)]).max(initial=0.0)
        click.echo(
            f"asked again after the kill at {kill.pages:,} pages: {len(before)}, for the first "
            f"time {longest:.2f} s before it at most"
        )
    assert len(again) == 0, f"{len(again)} asked twice though nobody was killed meanwhile"
    _compare_links(url, web, recorded)


def _compare_links(url: str, web: GeneratedWeb, recorded: NDArray[np.int64]) -> None:
    """Compare the links of some pages in the store with those of the web."""
    some = Random(0).sample(recorded.tolist(), min(SAMPLE, len(recorded)))
    judged = right = 0
    for start in range(0, len(some), 100):
        names = {web.url(number): number for number in some[start : start + 100]}
        listed = ", ".join(f"'{name}'" for name in names)
        found: dict[str, list[str]] = {name: [] for name in names}
        for source, target in query(
            url,
            "SELECT s.url, t.url FROM link l JOIN url s ON s.id = l.source "
            "JOIN url t ON t.id = l.target WHERE l.source IN "
            f"(SELECT id FROM url WHERE url IN ({listed}))",
        ):
            found[source].append(target)
        for name, number in names.items():
            wanted = sorted(web.url(target) for target in web.links(number))
            assert sorted(found[name]) == wanted, name
        for name, relevance in query(
            url, f"SELECT url, relevance FROM pages WHERE url IN ({listed})"
        ):
            judged += 1
            right += (relevance > 0.5) == web.of_topic(names[name])
    click.echo(
        f"{len(some):,} pages have the links that they should; {right / judged:.1%} of them "
        "are judged as they were made"
    )


_RECORDED = "SELECT u.url FROM page p JOIN url u ON u.id = p.url"


@contextmanager
def _served(web: GeneratedWeb, out: Path) -> Iterator[psutil.Process]:
    """Serve a web."""
    script = Path(__file__).with_name("generated_web.py")
    line = [sys.executable, str(script), str(web.pages), str(web.port), str(out)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield psutil.Process(process.pid)
        finally:
            process.terminate()


def _pages(url: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return when pages were fetched, ascending, and their relevance as they were recorded."""
    rows = query(
        url, "SELECT extract(epoch FROM fetched_at::timestamptz), relevance FROM page ORDER BY seq"
    )
    times = np.array([float(at) for at, _ in rows])
    return np.sort(times), np.array([relevance for _, relevance in rows])


def _spent(before: Sample, after: Sample) -> float:
    """Return the workers' seconds of processor between two looks."""
    return sum(
        seconds - before.workers.get(pid, (0, 0.0))[1]
        for pid, (_, seconds) in after.workers.items()
    )


def _number(web: GeneratedWeb, url: str) -> int:
    address, _, path = url.removeprefix("http://").partition("/")
    number = web.number(address.partition(":")[0], f"/{path}")
    assert number is not None
    return number


def _name(pid: int) -> str:
    return f"{socket.gethostname()}:{pid}"


def _epoch(at: Any) -> float:
    return datetime.fromisoformat(at).timestamp() if at else np.nan


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%H:%M:%S")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    main()
