"""Benefit and cost of waiting for busy hosts: polite live crawls of local servers.

Run: ``python benchmarks/bench_patience.py docs`` for ten servers of documentation packages of
Debian, one of which has two thirds of the pages on the topic (databases). `documentation_servers`
downloads and unpacks the packages into ``--folder``. ``curve`` draws the results. ``hosts`` crawls
200 hosts of generated pages with equal shares of the topic, and ``clock`` does so without a
network. With default politeness a crawl of ``docs`` mostly waits, for minutes, so several run at a
time. All servers are on the loopback network.
"""

from __future__ import annotations

import csv
import heapq
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from documentation_servers import DATABASES, SITES, DocServer, FilesWeb, unpack
from generated_web import TOPIC, GeneratedWeb
from generated_web import Pages as GeneratedPages

from focuscrawl.crawl.loop import fetch_answer, process_answer
from focuscrawl.critic import load_critic
from focuscrawl.critic.critic_files import save_critic
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.critic.training import train_critic
from focuscrawl.foundation.files import cache_dir
from focuscrawl.testing import new_crawl
from focuscrawl.webs.web_protocol import Answer

if TYPE_CHECKING:
    from focuscrawl.crawl import Crawl, Fetch

ROOT = Path(__file__).resolve().parents[1]
BUDGET = 400
ANSWER = 0.05  # seconds per response, on a simulated clock
HOSTS = 200
LIVE = ("FOCUSCRAWL_PRIVATE_ADDRESSES=127.0.0.0/8", "FOCUSCRAWL_WARC=0", "LOG_LEVEL=ERROR")


@dataclass(frozen=True)
class Crawled:
    """Result of a crawl."""

    patience: float
    draw: int
    fetched: int
    relevant: int
    harvest: float
    seconds: float
    overtaken: int
    processor: float

    @property
    def speed(self) -> float:
        """Pages a second."""
        return self.fetched / self.seconds


def crawl(patience: float, draw: int, *more: str, **given: object) -> Crawled:
    """Crawl like a user; `given` are ``-a`` arguments, `more` are ``-s`` settings."""
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept) / "crawl"
        given |= {"crawl_dir": folder, "random_state": draw}
        settings = [*LIVE, f"FOCUSCRAWL_PATIENCE={patience:g}", *more]
        command = [sys.executable, "-m", "scrapy", "crawl", "focused"]
        command += [part for name, value in given.items() for part in ("-a", f"{name}={value}")]
        command += [part for each in settings for part in ("-s", each)]
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(said.decode())
        return _read(folder, patience, draw, used.ru_utime)


def _read(folder: Path, patience: float, draw: int, processor: float) -> Crawled:
    with closing(sqlite3.connect(folder / "crawl.db")) as store:
        rows = store.execute("SELECT relevance, fetched_at FROM pages").fetchall()
        overtaken = "SELECT count(*) FROM events WHERE kind = 'overtaken'"
        times = sorted(datetime.fromisoformat(at) for _, at in rows)
        return Crawled(
            patience,
            draw,
            len(rows),
            sum(relevance > 0.5 for relevance, _ in rows),
            sum(relevance for relevance, _ in rows) / len(rows),
            (times[-1] - times[0]).total_seconds(),
            store.execute(overtaken).fetchone()[0],
            processor,
        )


@click.group()
def main() -> None:
    """Measure the effect of patience."""


@main.command()
@click.option("--folder", type=Path, default=cache_dir() / "documentation")
@click.option("--patience", "values", default="0,1,1.5,2,3,5,10,20,50,200")
@click.option("--draws", default="1")
@click.option("--at-once", default=3, help="crawls at a time")
@click.option("--out", type=Path, default=Path("patience.csv"))
def docs(folder: Path, values: str, draws: str, at_once: int, out: Path) -> None:
    """Crawl ten servers of documentation; a draw is one of the critic's examples."""
    folder.mkdir(parents=True, exist_ok=True)
    servers = [DocServer(number, pages) for number, pages in enumerate(unpack(folder))]
    web = FilesWeb(servers, SITES)
    pages = Counter(urlsplit(url).netloc for url in web.files if web.topics[url] == DATABASES)
    shares = ", ".join(f"{n / pages.total():.0%} of {n}" for n in pages.values())
    click.echo(f"{len(web.files):,} pages; of the topic {pages.total()}: {shares}")
    seeds = ",".join(s.origin + site.start for s, site in zip(servers, SITES, strict=True))
    jobs = []
    with tempfile.TemporaryDirectory() as critics, ThreadPoolExecutor(at_once) as pool:
        for draw in map(int, draws.split(",")):
            critic = str(Path(critics) / str(draw))
            save_critic(train_critic(web.labels(draw), web), critic)
            jobs += [
                pool.submit(
                    crawl,
                    float(each),
                    draw,
                    topic=DATABASES,
                    critic=critic,
                    seeds=seeds,
                    budget=BUDGET,
                )
                for each in values.split(",")
            ]
        with out.open("a", newline="", encoding="utf-8") as file:
            for job in jobs:
                done = job.result()
                csv.writer(file).writerow(vars(done).values())
                file.flush()
                _tell(done)


def _tell(done: Crawled) -> None:
    click.echo(
        f"patience {done.patience:g}, draw {done.draw}: {done.relevant} relevant of "
        f"{done.fetched}, harvest {done.harvest:.3f}, {done.seconds:.0f} s, "
        f"{done.speed:.2f} pages/s, fidelity {1 - done.overtaken / done.fetched:.2f}, "
        f"{done.processor:.1f} s of processor"
    )


@main.command()
@click.argument("table", type=Path)
@click.argument("out", type=Path)
def curve(table: Path, out: Path) -> None:
    """Draw harvest against pages/s, means over draws, from the table of ``docs``."""
    from focuscrawl.report.figures import LineStyle, png, single_plot  # noqa: PLC0415

    rows = [
        Crawled(float(p), int(d), int(n), int(r), float(h), float(s), int(o), float(c))
        for p, d, n, r, h, s, o, c in csv.reader(table.open(encoding="utf-8"))
    ]
    values = sorted({row.patience for row in rows})
    speed, harvest = [], []
    for value in values:
        of_value = [row for row in rows if row.patience == value]
        speed.append(sum(row.speed for row in of_value) / len(of_value))
        harvest.append(sum(row.harvest for row in of_value) / len(of_value))
    with single_plot(6.0, 3.6) as (figure, plot):
        LineStyle.of(0).draw(plot, speed, harvest, "harvest", marker="o")
        for place, (value, x, y) in enumerate(zip(values, speed, harvest, strict=True)):
            offset = (2, -14 if place % 2 else 6)
            plot.annotate(f"{value:g}", (x, y), textcoords="offset points", xytext=offset)
        plot.set(xlabel="pages/s", ylabel="harvest rate", ylim=(0, 1.05))
        out.write_bytes(png(figure))


@main.command()
@click.option("--budget", default=4000)
@click.option("--rounds", default=3)
@click.option("--patience", "values", default="0,5")
@click.option("--strategy", default="apprentice")
def hosts(budget: int, rounds: int, values: str, strategy: str) -> None:
    """Crawl 200 hosts of generated pages, in turn with each patience."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        web = GeneratedWeb.of(1000 * HOSTS, port)
        with _served(web, Path(folder) / "asked"):
            seeds = ",".join(web.url(number) for number in range(web.hosts))
            found: dict[float, list[Crawled]] = {}
            for each in range(rounds):
                for value in map(float, values.split(",")):
                    done = crawl(
                        value,
                        each,
                        topic=TOPIC,
                        critic="models/demo",
                        seeds=seeds,
                        budget=budget,
                        strategy=strategy,
                    )
                    found.setdefault(value, []).append(done)
                    _tell(done)
    for value, runs in found.items():
        speed = median(run.speed for run in runs)
        click.echo(f"patience {value:g}: median {speed:.1f} pages/s")


@main.command()
@click.option("--budget", default=1500)
@click.option("--patience", "values", default="0,5")
@click.option("--strategy", default="best-first")
@click.option("--work", default=0.008, help="seconds of processor a page")
def clock(budget: int, values: str, strategy: str, work: float) -> None:
    """Crawl the same hosts in this process on a simulated clock."""
    web = GeneratedHosts()
    critic = load_critic("models/demo", TOPIC)
    seeds = [web.of.url(number) for number in range(HOSTS)]
    for patience in map(float, values.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            crawl = new_crawl(
                Path(folder),
                web,
                seeds,
                critic=critic,
                strategy=strategy,
                budget=budget,
                delay=1.0,
                patience=patience,
                concurrency=16,
            )
            relevant, seconds = _by_the_clock(crawl, work)
            crawl.close("budget")
        click.echo(
            f"patience {patience:g}: {relevant} relevant of {budget}, {seconds:.1f} s, "
            f"{budget / seconds:.1f} pages/s"
        )


class GeneratedHosts:
    """Hosts of generated pages as a web without a network."""

    name, fingerprint = "generated", "generated"

    def __init__(self) -> None:
        self.of = GeneratedWeb.of(1000 * HOSTS, 8000)
        self._pages = GeneratedPages(self.of)

    def urls(self) -> Iterator[str]:
        """Iterate over all pages."""
        return map(self.of.url, range(self.of.pages))

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Map URLs to themselves."""
        return [*urls]

    def fetch(self, url: str) -> Answer | None:
        """Return a page."""
        parts = urlsplit(url)
        number = self.of.number(parts.hostname or "", parts.path)
        if number is None:
            return None
        return Answer(url, 200, [("content-type", "text/html")], self._pages.html(number).encode())


def _by_the_clock(crawl: Crawl, work: float) -> tuple[int, float]:
    """Crawl to the end; return relevant pages and seconds."""
    now, relevant, given = 0.0, 0, 0
    under_way: list[tuple[float, int, Fetch]] = []
    while crawl.stop_reason is None:
        fetch = crawl.next(now)
        if fetch is not None:
            given += 1
            heapq.heappush(under_way, (now + ANSWER, given, fetch))
            continue
        ready = crawl.frontier.next_ready()
        if ready is not None and now < ready and (not under_way or ready < under_way[0][0]):
            now = ready
        elif under_way:
            arrived, _, fetch = heapq.heappop(under_way)
            now = max(now, arrived) + work
            relevant += (
                process_answer(crawl, fetch, fetch_answer(crawl, fetch)).relevance > RELEVANT
            )
        else:
            time.sleep(0.001)  # until a training is done
    return relevant, now


@contextmanager
def _served(web: GeneratedWeb, out: Path) -> Iterator[None]:
    script = Path(__file__).with_name("generated_web.py")
    command: list[Any] = [sys.executable, script, str(web.pages), str(web.port), str(out)]
    with subprocess.Popen(command) as process:
        while True:
            try:
                socket.create_connection((web.address(0), web.port)).close()
                break
            except OSError:
                time.sleep(0.1)
        yield
        process.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    main()
