"""Cost of a million pages: processor time and money, by web and by way to crawl and to fetch.

Run: ``python benchmarks/bench_cost.py pages [uci] [wikipedia] [webkb] [demo] [--price P]``. The
table has the median of ``--topics`` topics of each web. Finished measurements are in a CSV file
(``--out``) and are not repeated, so a run can be interrupted.

``python benchmarks/bench_cost.py growth FOLDER [--most N]`` measures how the cost and the memory
grow with the number of known URLs.

Times are user and system seconds of all processes of a command. A server on the loopback network
(`web_on_loopback.py`), whose time is not included, serves the pages with HTTP or TLS; in the rows
*recording*, the crawl is a replay. Crawls of a topic by one strategy fetch nearly the same pages.
Rounds continue the crawl of the apprentice with one round of as many fetches. The time to start a
process is subtracted and shown apart, because a long crawl starts few processes.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from itertools import groupby, product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pq
from bench_completeness import prepared
from bench_frontier import in_fresh_process
from bench_frontier import pages as pages_of_links
from bench_rounds_cluster import STAGES
from replays import ROOT, recording, run
from web_on_loopback import serving

from focuscrawl.crawl import CrawlConfig
from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.report.measures import load_pages
from focuscrawl.rounds.tables import Tables
from focuscrawl.store import VisitRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WEBS = ("uci", "wikipedia", "webkb", "demo")
DEMO_TOPICS = ("/Sports/Cycling", "/Arts/Music/Jazz", "/Science/Astronomy")
ROUND = 1000  # fetches of the rounds by which the growth is measured
PRICE = 0.04  # dollars for one core for an hour
FOCUSCRAWL = (sys.executable, "-m", "focuscrawl")
#: arguments of the server for each way to fetch; None: a replay
TRANSPORTS: dict[str, dict[str, bool] | None] = {
    "HTTP": {},
    "TLS": {"tls": True},
    "recording": None,
    "TLS, a connection a page": {"tls": True, "close": True},
}
WAYS = {
    "HTTP": ("apprentice", "best-first", "rounds"),
    "TLS": ("apprentice", "best-first", "rounds"),
    "recording": ("apprentice",),
    "TLS, a connection a page": ("apprentice",),
}


class Row(NamedTuple):
    """The cost of a page, crawled or exported.

    Attributes
    ----------
    pages : int
        Number of pages whose cost was measured.
    kilobytes : float
        Mean size of these pages.
    milliseconds : float
        Processor time of a page, without starts of processes.
    start : float
        Processor seconds to start the command.
    """

    web: str
    topic: str
    transport: str
    way: str
    pages: int
    kilobytes: float
    milliseconds: float
    start: float


@dataclass(frozen=True)
class Start:
    """What the crawls of a topic start with; the fields are arguments of a crawl."""

    web: str
    critic: str
    seeds: str
    topic: str


class OneProcess:
    """A crawl with ``scrapy crawl focused``; without settings, a replay."""

    def __init__(
        self, start: Start, strategy: str, settings: Mapping[str, Any], folder: Path
    ) -> None:
        self.folder = folder
        arguments = asdict(start) | {"strategy": strategy, "crawl_dir": folder}
        if settings:
            del arguments["web"]
        self._given = [*_options("-a", arguments), *_options("-s", settings)]

    def run(self, budget: int) -> float:
        """Crawl until the budget is spent; return the processor seconds."""
        command = [sys.executable, "-m", "scrapy", "crawl", "focused", "-L", "ERROR"]
        return measure([*command, *self._given, "-a", f"budget={budget}"])

    def sizes(self) -> list[int]:
        """Return the bytes of all fetched pages, in order."""
        return list(load_pages(self.folder)["bytes"])


class Rounds:
    """A crawl with ``focuscrawl rounds`` and one bucket, which continues another crawl."""

    def __init__(
        self, start: Start, size: int, settings: Mapping[str, Any], earlier: OneProcess
    ) -> None:
        self._folder = earlier.folder.with_name("rounds")
        self._plan = asdict(start) | {"round": size, "buckets": 1}
        del self._plan["web"]
        self._settings = settings
        self._earlier = earlier

    def run(self, budget: int) -> float:
        """Crawl until the budget is spent; return the processor seconds."""
        path = self._folder.with_suffix(".toml")
        lines = [*_toml(self._plan | {"budget": budget}), "[settings]", *_toml(self._settings)]
        path.write_text("\n".join(lines), encoding="utf-8")
        where = ["--out", str(self._folder), "--from", str(self._earlier.folder)]
        command = [*FOCUSCRAWL, "rounds", str(path), *where, "--master", "processes[1]"]
        return measure(command)

    def sizes(self) -> list[int]:
        """Return the bytes of all fetched pages, those of the other crawl first."""
        return list(pq.read_table(self._folder / "pages")["size"].to_pylist())

    @property
    def number(self) -> int:
        """Number of finished rounds."""
        last = Tables(str(self._folder)).read_json("rounds/last.json")
        assert last is not None
        return int(last["round"])


def _options(flag: str, values: Mapping[str, Any]) -> list[str]:
    return [part for name, value in values.items() for part in (flag, f"{name}={value}")]


def _toml(values: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {json.dumps(value)}" for name, value in values.items()]


def starts(web: str, count: int) -> list[Start]:
    """Return what crawls of `count` topics start with; prepare the recording and the critic."""
    if web == "demo":
        models = ROOT / "models" / "demo"
        given = "demo:10", str(models), str(models / "seeds.csv")
        return [Start(*given, topic) for topic in DEMO_TOPICS[:count]]
    critic, seeds, topics, _ = prepared(web)
    chosen = [topics[(2 * number + 1) * len(topics) // (2 * count)] for number in range(count)]
    return [Start(str(recording(web)), str(critic), str(seeds), topic) for topic in chosen]


def measure(command: Sequence[str]) -> float:
    """Run a command to its end; return the processor seconds of all its processes."""
    path = os.pathsep.join((str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")))
    environment = os.environ | {"PYTHONPATH": path}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=output
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise SystemExit(f"{' '.join(command)}\n{output.read().decode(errors='replace')}")
    return used.ru_utime + used.ru_stime


def measure_topic(
    web: str, start: Start, transport: str, pages: int, begins: dict[str, float]
) -> Iterator[Row]:
    """Yield the cost of each way to crawl a topic with one way to fetch, and of exports.

    `begins` gets the seconds to start a command, by kind of crawl.
    """
    arguments = TRANSPORTS[transport]
    server: AbstractContextManager[dict[str, Any]] = (
        nullcontext({}) if arguments is None else serving(start.web, **arguments)
    )
    with server as settings, tempfile.TemporaryDirectory() as name:
        before = OneProcess(start, "apprentice", settings, Path(name) / "apprentice")
        for way in WAYS[transport]:
            first, processes = 0, 0
            kind = f"{'live' if settings else 'replay'}, {way == 'rounds'}"
            crawl: OneProcess | Rounds = before
            if way == "rounds":
                crawl = Rounds(start, pages, settings, before)
                crawl.run(pages)  # imports the crawl of the apprentice
                first, processes = pages, -crawl.number
            elif way != "apprentice":
                crawl = OneProcess(start, way, settings, Path(name) / way)
            used = crawl.run(first + pages)
            if kind not in begins:
                begins[kind] = crawl.run(first + pages)  # which fetches nothing
            seconds = used - begins[kind]
            if isinstance(crawl, Rounds):
                # on the live Web, a bucket of a round is a process, which starts like a crawl
                seconds -= (processes + crawl.number) * begins["live, False"]
            sizes = crawl.sizes()[first:]
            row = Row(
                web,
                start.topic,
                transport,
                way,
                len(sizes),
                sum(sizes) / len(sizes) / 1e3,
                1e3 * seconds / len(sizes),
                begins[kind],
            )
            yield row
            if (way, transport) == ("apprentice", "HTTP"):
                yield measure_export(before.folder, row)


def measure_export(folder: Path, row: Row) -> Row:
    """Return the cost to export a relevant page of a crawl."""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "corpus.parquet"
        command = [*FOCUSCRAWL, "collect", str(folder), "--out", str(out)]
        used = measure(command)
        pages = pq.read_metadata(out).num_rows
        out.unlink()
        begin = measure(command)  # which extracts nothing
    return row._replace(
        way="export", pages=pages, milliseconds=1e3 * (used - begin) / pages, start=begin
    )


def rows_of(path: Path) -> list[Row]:
    if not path.exists():
        path.write_text(",".join(Row._fields) + "\n", encoding="utf-8")
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(web, topic, transport, way, int(pages), float(size), float(cost), float(start))
            for web, topic, transport, way, pages, size, cost, start in [*csv.reader(file)][1:]
        ]


def table(rows: Sequence[Row], price: float) -> Iterator[str]:
    """Yield the lines of a table with the medians of the topics.

    The ratio is to the crawl of the same topic with the apprentice by HTTP.
    """
    yield (
        "| web | kB a page | way | fetched by | ms a page (topics) | ratio "
        "| core-hours a million | $ a million | start, s |"
    )
    yield "|---|--:|---|---|--:|--:|--:|--:|--:|"
    usual = {row[:2]: row.milliseconds for row in rows if row[2:4] == ("HTTP", "apprentice")}

    def kind(row: Row) -> tuple[int, tuple[bool, bool, str], int]:
        first = row.way != "apprentice", row.way == "export", row.way
        return WEBS.index(row.web), first, list(TRANSPORTS).index(row.transport)

    for _, group in groupby(sorted(rows, key=kind), kind):
        found = list(group)
        web, _, transport, way = found[0][:4]
        each = median(row.milliseconds for row in found)
        ratio = median(row.milliseconds / usual[row[:2]] for row in found)
        every = ", ".join(f"{row.milliseconds:.1f}" for row in found)
        hours = each / 3.6  # of a million pages
        yield (
            f"| {web} | {median(row.kilobytes for row in found):.0f} | {way} | {transport} "
            f"| {each:.1f} ({every}) | {ratio:.2f} | {hours:.1f} | {hours * price:.2f} "
            f"| {median(row.start for row in found):.1f} |"
        )


def measure_pages(given: argparse.Namespace) -> None:
    """Measure all webs, topic by topic, and print the table."""
    begins = dict[str, float]()
    of_webs = {web: starts(web, given.topics) for web in given.webs}
    for number, transport, web in product(range(given.topics), TRANSPORTS, given.webs):
        start = of_webs[web][number]
        if (web, start.topic, transport) in {row[:3] for row in rows_of(given.out)}:
            continue
        rows = list(measure_topic(web, start, transport, given.pages, begins))
        with given.out.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
        for row in rows:
            print(*row, flush=True)
    print("\n".join(table(rows_of(given.out), given.price)))


def measure_growth(given: argparse.Namespace) -> None:
    """Print the cost and the memory of a frontier, a crawl and rounds, by known URLs."""
    counts = [10**power for power in range(4, 9) if 10**power <= given.most]
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            stored = in_fresh_process("store", count, "made", folder)
            opened = in_fresh_process("reopen", count, "made", folder)
        print(
            f"frontier, {count:,} URLs: {1e6 / stored['  links/s of processor']:.0f} us to add "
            f"and to store a URL, {opened['  s of processor']:.1f} s to reopen, "
            f"{stored['resident MB, with its store']:,.0f} MB",
            flush=True,
        )
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            cost = crawl_beside(count, Path(folder), given.pages)
        print(f"crawl, {count:,} more URLs: {cost:.1f} ms a page", flush=True)
    grow_rounds(given.folder, counts)


def crawl_beside(count: int, folder: Path, pages: int, strategy: str = "best-first") -> float:
    """Return the milliseconds of a page in a crawl that knows many more URLs.

    The crawl has a score for each of these URLs, and never fetches them.
    """
    (start,) = starts("demo", 1)
    crawl = OneProcess(start, strategy, {}, folder)
    crawl.run(pages)
    config = CrawlConfig(**asdict(start), strategy=strategy, crawl_dir=str(folder))
    opened = open_crawl(config.with_values(budget=pages))
    for page in pages_of_links(count, "made"):
        for url, score in page:
            opened.queue(opened.urls.add(url, 1, None), 1e-6 * score)
        opened.put(VisitRecord())
    opened.close("measured")
    seconds = crawl.run(2 * pages)
    return 1e3 * (seconds - crawl.run(2 * pages)) / pages


def grow_rounds(folder: Path, counts: Sequence[int]) -> None:
    """Print the cost of a round of `ROUND` fetches of the same pages, by known URLs."""
    base = folder / "base"
    _, known = crawl_in_rounds_to(ROUND, base, ROUND // 4)
    for count in counts:
        tables = folder / str(count)
        shutil.copytree(base, tables)
        script = Path(__file__).with_name("multiply_known_urls.py")
        run([sys.executable, str(script), str(tables / "tables"), str(round(count / known))])
        last, _ = crawl_in_rounds_to(2 * ROUND, tables, ROUND)
        stages = sum(float(last[name]) for name in STAGES)
        reads = sum(float(last[name]) for name in ("open", "read", "join", "rank", "write"))
        print(
            f"round of {ROUND:,}, {int(last['known']):,} URLs: {1e3 * stages / ROUND:.1f} ms a "
            f"page, {reads:.1f} s for what is known, {float(last['driver']):,.0f} MB",
            flush=True,
        )
        shutil.rmtree(tables)


def crawl_in_rounds_to(fetches: int, folder: Path, size: int) -> tuple[dict[str, str], int]:
    """Crawl in rounds in one process; return the row of the last round, and the known URLs."""
    script = Path(__file__).with_name("bench_rounds_cluster.py")
    given = ["--alone", "--buckets", "8", "--fetches", str(fetches), "--round", str(size)]
    run([sys.executable, str(script), str(folder), *given])
    with (folder / "rounds.csv").open(encoding="utf-8", newline="") as file:
        last = [*csv.DictReader(file)][-1]
    return last, int(last["known"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    pages = commands.add_parser("pages")
    pages.add_argument("webs", nargs="*", default=WEBS)
    pages.add_argument("--price", type=float, default=PRICE)
    pages.add_argument("--pages", type=int, default=500)
    pages.add_argument("--topics", type=int, default=3)
    pages.add_argument("--out", type=Path, default=Path("cost.csv"))
    pages.set_defaults(run=measure_pages)
    growth = commands.add_parser("growth")
    growth.add_argument("folder", type=Path)
    growth.add_argument("--most", type=int, default=10_000_000)
    growth.add_argument("--pages", type=int, default=1500)
    growth.set_defaults(run=measure_growth)
    given = parser.parse_args()
    given.run(given)


if __name__ == "__main__":
    main()
