"""Several workers on one crawl in PostgreSQL: what they keep, what they cost, what they gain.

Run: ``python benchmarks/bench_workers.py COMMAND``; each starts a PostgreSQL of its own.

``endurance``: 4 workers, 20,000 pages; one is killed, PostgreSQL is restarted, another joins
``speed``: pages a second of 1 worker in a folder, and of 1 and 2 in PostgreSQL: on one core with
the server, on two cores, and each worker kept to a core
``harvest WEB CRITIC SEEDS TOPIC...``: mean relevance of 4 workers and of 1 at equal budget
``queue``: 1,000,000 queued links; what a page and a link cost the store; loading and re-scoring of
a worker that holds half of them
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import psutil
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from integration.postgres import PostgresServer
from integration.running import ROOT, TOPIC, Kept, command, environment
from integration.workers import Workers, assert_whole, query, strangers

from focuscrawl.apprentice.options import Options
from focuscrawl.apprentice.page_facts import PageFacts, pack_words
from focuscrawl.apprentice.scorer import new_learner
from focuscrawl.apprentice.serialization import pack
from focuscrawl.apprentice.sparse_rows import SparseRows
from focuscrawl.apprentice.url_features import table_of_keys
from focuscrawl.crawl import Crawl, CrawlPlan
from focuscrawl.store import PageRow, VisitRecord
from focuscrawl.store.records import LinkRow
from focuscrawl.store.schema import FETCHED, QUEUED
from focuscrawl.workers import open_shared_crawl
from focuscrawl.workers.joining import SharingOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HOURS = 4 * 3600.0
DEMO = {"critic": "models/demo", "topic": TOPIC, "seeds": "models/demo/seeds.csv"}
PAGES, LINKS, HOSTS, FEATURES = 10_000, 100, 10_000, 40
SETUPS = {  # workers, cores that they and the server have, whether each worker has one of these
    "1 on one core, with the server": (1, 1, False),
    "1 on two cores": (1, 2, False),
    "1 kept to a core": (1, 2, True),
    "2 on two cores": (2, 2, False),
    "2, each kept to a core": (2, 2, True),
}
ELSEWHERE = 0.2  # share of the links that leave the host


@click.group()
def main() -> None:
    """Measure crawls of several workers."""


@main.command()
@click.option("--pages", default=20_000, show_default=True)
@click.option("--workers", "count", default=4, show_default=True)
@click.option("--strategy", default="apprentice", show_default=True)
@click.option("--lease", default=15, show_default=True)
def endurance(*, pages: int, count: int, strategy: str, lease: int) -> None:
    """Kill a worker, restart the server, let another one join: nothing is lost or done twice."""
    with PostgresServer() as server, tempfile.TemporaryDirectory() as folder:
        url = server.url("endurance")
        arguments = {**DEMO, "web": f"demo:{pages / 1500:.0f}", "strategy": strategy}
        options = ("-s", f"FOCUSCRAWL_LEASE={lease}", "-s", "LOG_LEVEL=WARNING")
        with Workers(url, Path(folder), {**arguments, "budget": pages}, *options) as workers:
            for _ in range(count):
                workers.start()
            for share, happens in ((0.25, "kill"), (0.5, "restart"), (0.7, "join"), (1.0, "end")):
                _watch(workers, int(share * pages))
                click.echo(f"{query(url, 'SELECT fetched FROM crawl')[0][0]} pages: {happens}")
                if happens == "kill":
                    workers.kill(1)
                elif happens == "restart":
                    server.restart()
                elif happens == "join":
                    workers.start()
            codes = workers.wait(HOURS)
            for number in range(len(codes)):
                click.echo(f"worker {number}: exit code {codes[number]}")
                click.echo("".join(f"  {line}\n" for line in _said(workers.log(number))), nl=False)
        click.echo(_table(url))
        assert_whole(url, pages)
        click.echo(
            f"budget exact, no URL twice, no link lost; {len(strangers(url))} fetches by a worker "
            "that did not hold the host"
        )


@main.command()
@click.option("--pages", default=3000, show_default=True)
@click.option("--pairs", default=3, show_default=True)
@click.option("--strategy", default="apprentice", show_default=True)
@click.option("--web", default="demo:4", show_default=True)
def speed(*, pages: int, pairs: int, strategy: str, web: str) -> None:
    """Compare pages a second, by turns."""
    arguments = {**DEMO, "web": web, "strategy": strategy, "budget": pages}
    found: dict[str, list[float]] = {}
    with PostgresServer() as server:
        for pair in range(pairs):
            with tempfile.TemporaryDirectory() as folder:
                kept = _alone(Path(folder) / "alone", arguments)
                times = [at for (at,) in kept.query("SELECT fetched_at FROM page")]
                found.setdefault("1 in a folder", []).append(_rate(times))
                for number, (name, (count, cores, apart)) in enumerate(SETUPS.items()):
                    url = server.url(f"speed_{pair}_{number}")
                    before = server.processor()
                    with _confined(server, cores):
                        there = Path(folder) / f"{number}"
                        spent = _crawl(url, there, arguments, count, apart=apart)
                    times = [at for (at,) in query(url, "SELECT fetched_at FROM page")]
                    found.setdefault(name, []).append(_rate(times))
                    click.echo(f"{name}\n{_table(url)}")
                    click.echo(
                        f"  processor, start included: workers {spent:.1f} s, "
                        f"server {server.processor() - before:.1f} s"
                    )
            for name, rates in found.items():
                click.echo(f"{name:31} {rates[-1]:6.1f} pages/s")
    for two in (name for name in SETUPS if name.startswith("2")):
        click.echo(f"{two}: {np.median(found[two]):.1f} pages/s")
        for name, rates in found.items():
            ratio = np.array(found[two]) / np.array(rates)
            click.echo(
                f"  {np.median(ratio):.2f} times {name}, {np.median(rates):.1f} pages/s: "
                f"{np.round(np.sort(ratio), 2)}"
            )


@main.command()
@click.argument("web")
@click.argument("critic")
@click.argument("seeds")
@click.argument("topics", nargs=-1, required=True)
@click.option("--pages", default=2000, show_default=True)
@click.option("--workers", "count", default=4, show_default=True)
@click.option("--strategy", default="apprentice", show_default=True)
def harvest(
    *,
    web: str,
    critic: str,
    seeds: str,
    topics: tuple[str, ...],
    pages: int,
    count: int,
    strategy: str,
) -> None:
    """Compare harvest rates at equal budget."""
    differences = []
    with PostgresServer() as server:
        for i, topic in enumerate(topics):
            arguments = {
                "web": web,
                "critic": critic,
                "seeds": seeds,
                "topic": topic,
                "strategy": strategy,
                "budget": pages,
            }
            with tempfile.TemporaryDirectory() as folder:
                kept = _alone(Path(folder) / "alone", arguments)
                ((alone,),) = kept.query("SELECT avg(relevance) FROM page")
                rates = []
                for n in (1, count):
                    url = server.url(f"harvest_{i}_{n}")
                    _crawl(url, Path(folder) / str(n), arguments, n)
                    rates.append(float(query(url, "SELECT avg(relevance) FROM page")[0][0]))
            differences.append(rates[1] - alone)
            click.echo(
                f"{topic}: in a folder {alone:.3f}, 1 worker {rates[0]:.3f}, {count} workers "
                f"{rates[1]:.3f} ({rates[1] - alone:+.3f})"
            )
            click.echo(_table(url))
    click.echo(f"mean difference {np.mean(differences):+.3f}")


@main.command()
@click.option("--pages", default=PAGES, show_default=True)
def queue(*, pages: int) -> None:
    """Queue a hundred links a page; load and re-score half of them."""
    with PostgresServer() as server, tempfile.TemporaryDirectory() as folder:
        url = server.url("queue")
        plan = CrawlPlan(
            topic=TOPIC, web="demo", seeds=DEMO["seeds"], budget=0, crawl_dir=f"{folder}/first"
        )
        first = open_shared_crawl(plan, url, SharingOptions(lease=600.0))
        _fill(first, pages, server)
        first.close("interrupted")
        sizes = query(
            url,
            "SELECT relname, pg_total_relation_size(oid) / 1e6 FROM pg_class WHERE relkind = 'r' "
            "AND relnamespace = 'queue'::regnamespace ORDER BY 2 DESC LIMIT 4",
        )
        click.echo("MB: " + ", ".join(f"{name} {size:.0f}" for name, size in sizes))
        # somebody else has half of the shards
        query(
            url,
            """INSERT INTO worker (name, state, joined_at, renewed_at, expires, batch, outstanding,
               fetched, pace, offers, queued, model_version) SELECT 'other', 'alive', now(), now(),
               now() + interval '1 hour', 0, 0, 0, 0, '', 0, 0""",
        )
        query(url, "UPDATE shard SET owner = (SELECT max(id) FROM worker) WHERE number % 2 = 1")
        began = time.perf_counter()
        half = open_shared_crawl(
            CrawlPlan(**{**vars(plan), "seeds": None, "crawl_dir": f"{folder}/half"}),
            url,
            SharingOptions(lease=600.0),
        )
        took = time.perf_counter() - began
        click.echo(f"loading {len(half.frontier):,} queued URLs: {took:.1f} s")
        click.echo(f"resident: {psutil.Process().memory_info().rss / 1e6:.0f} MB (with the first)")
        _rescore(half)
        half.close("interrupted")


def _rows(rng: np.random.Generator, n: int, each: int) -> SparseRows:
    features = rng.integers(0, 200_000, n * each, dtype=np.int32)
    return SparseRows(features, np.arange(n + 1) * each)


def _fill(crawl: Crawl, pages: int, server: PostgresServer) -> None:
    rng, empty = np.random.default_rng(0), pack_words([])
    before = server.processor()
    began, thread = time.perf_counter(), time.thread_time()
    for number in tqdm(range(pages), desc="Queueing", unit=" pages"):
        home = number % HOSTS
        hosts = np.where(rng.random(LINKS) < ELSEWHERE, rng.integers(0, HOSTS, LINKS), home)
        names = [f"http://h{h}.example/d{i % 7}/p{number}-{i}.html" for i, h in enumerate(hosts)]
        page = crawl.urls.add(f"http://h{home}.example/page{number}", 1, None)
        targets = np.array([crawl.urls.add(name, 2, page) for name in names], np.int64)
        facts = PageFacts(
            relevance=np.array([rng.random()]),
            own_keys=table_of_keys([crawl.urls[page]]),
            page_indices=rng.integers(0, 200_000, 8, dtype=np.int32),
            targets=targets,
            position=np.arange(LINKS, dtype=np.int32),
            reading=rng.normal(size=LINKS).astype(np.float32),
            links=_rows(rng, LINKS, FEATURES),
            new=targets,
            urls=_rows(rng, LINKS, 5),
            url_keys=table_of_keys(names),
            vocabulary=empty,
            around=rng.normal(size=LINKS).astype(np.float32),
            page_values=np.zeros(0, np.float32),
        )
        crawl.urls.change(page, FETCHED, 0.5)
        for target in targets.tolist():
            crawl.urls.change(target, QUEUED, 0.5)
        row = PageRow(0, page, 200, 0.5, None, 0.5, "2026-01-01T00:00:00+00:00", None, 1000)
        links = [
            LinkRow(number * LINKS + i, page, target, "anchor text", i, 0.5, 1)
            for i, target in enumerate(targets.tolist())
        ]
        crawl.put(VisitRecord(page=row, links=links, memo=facts.to_bytes()))
        while crawl.writer.full:
            time.sleep(0.001)
    own = time.thread_time() - thread
    crawl.writer.close()
    took = time.perf_counter() - began
    spent = server.processor() - before
    worker = time.process_time()
    click.echo(
        f"{pages:,} pages, {pages * LINKS:,} links in {took:.1f} s, {own:.1f} s to make them up: "
        f"{1e3 * spent / pages:.2f} ms a page and {1e6 * spent / pages / LINKS:.1f} us a link of "
        f"the server's processor; worker {worker:.1f} s in all"
    )


def _rescore(crawl: Crawl) -> None:
    strategy = crawl.strategy
    learner = new_learner(Options())
    weights, dense = learner.linear()
    rng = np.random.default_rng(1)
    used = np.arange(len(weights))
    learner.set_state(
        {
            "used": used,
            "weights": rng.normal(size=len(used)),
            "base": np.zeros(0),
            "dense": dense,
            "prior": dense,
        }
    )
    began = time.perf_counter(), time.thread_time()
    lesson = strategy.take_up(1, pack(learner), 0)
    scored = time.perf_counter(), time.thread_time()
    arrangement = crawl.frontier.arrange(lesson.urls, lesson.scores)
    sorted_at = time.perf_counter(), time.thread_time()
    found = strategy.adopt(lesson)
    crawl.frontier.adopt(arrangement)
    crawl.frontier.update(*found)
    adopted = time.perf_counter(), time.thread_time()
    steps = (began, scored, sorted_at, adopted)
    parts = [
        f"{after[0] - before[0]:.2f} s ({after[1] - before[1]:.2f} s of processor)"
        for before, after in pairwise(steps)
    ]
    click.echo(f"re-scoring {len(lesson.urls):,} URLs: score {parts[0]}, sort {parts[1]}")
    click.echo(f"adopt, on the event loop: {parts[2]}")


def _alone(folder: Path, arguments: Mapping[str, object]) -> Kept:
    """Crawl by one process, into a folder."""
    line = command(folder, "-s", "LOG_LEVEL=ERROR", **arguments)
    subprocess.run(line, cwd=ROOT, env=environment(), check=True, stderr=subprocess.DEVNULL)
    return Kept(folder)


def _crawl(
    url: str, folder: Path, arguments: Mapping[str, object], count: int, *, apart: bool = False
) -> float:
    """Crawl by workers to the end, each kept to a core or not; return their processor seconds."""
    folder.mkdir()
    cores = sorted(os.sched_getaffinity(0))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with Workers(url, folder, arguments, "-s", "LOG_LEVEL=WARNING") as workers:
        for number in range(count):
            process = workers.start()
            if apart:
                os.sched_setaffinity(process.pid, {cores[number % len(cores)]})
        codes = workers.wait(HOURS)
        assert not any(codes), "".join(workers.log(number) for number in range(count))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def _confined(server: PostgresServer, cores: int) -> Iterator[None]:
    """Have the server, and the processes started meanwhile, on so many cores."""
    usable = os.sched_getaffinity(0)
    here = set(sorted(usable)[:cores])
    postmaster = psutil.Process(server.pid)
    everything = [os.getpid(), server.pid, *(each.pid for each in postmaster.children())]
    try:
        for pid in everything:
            os.sched_setaffinity(pid, here)
        yield
    finally:
        for pid in everything:
            with suppress(ProcessLookupError):
                os.sched_setaffinity(pid, usable)


def _watch(workers: Workers, pages: int) -> None:
    with tqdm(total=pages, unit=" pages", desc="Crawling") as bar:
        while bar.n < pages:
            bar.update(workers.wait_for(min(pages, int(bar.n) + 200), HOURS) - bar.n)


def _rate(times: list[str]) -> float:
    """Return pages a second from the first tenth of a crawl on, when all have started."""
    at = sorted(datetime.fromisoformat(each).timestamp() for each in times)[len(times) // 10 :]
    return (len(at) - 1) / (at[-1] - at[0])


def _table(url: str) -> str:
    rows = query(
        url, "SELECT id, state, fetched, batch, queued, model_version FROM worker ORDER BY id"
    )
    said = "  worker {}: {}, {} pages in {} transactions, {} queued, model {}"
    return "\n".join(said.format(*row) for row in rows)


def _said(log: str) -> list[str]:
    lines = [line for line in log.splitlines() if " WARNING " in line or " ERROR " in line]
    return [line for line in lines if ".alarm: " not in line][-8:]


if __name__ == "__main__":
    main()
