"""Cost of the studio: first paint, memory, and slow-down of a crawl (docs/research/benchmarks.md).

``python benchmarks/bench_studio.py paint`` opens each page of a generated crawl of 100,000 pages
and 1,000,000 queued URLs in a headless Chromium. ``beside`` crawls the demo web alternately with
and without a tab that shows the crawl. ``hour`` keeps a tab open during one crawl.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import psutil
from playwright.sync_api import sync_playwright

from focuscrawl.crawl import CrawlFolder
from focuscrawl.report.status import open_store
from focuscrawl.store import CrawlStore, NewUrl, PageRow, schema
from focuscrawl.store.schema import LinkRow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_PAGES, _WAITING, _HOSTS, _LINKS = 100_000, 1_000_000, 5_000, 12
_NICE = 10  # niceness of a long crawl
_ROUNDS = 6  # minimum number of rounds for the second and last but one to bound the median
_PART = 10  # minutes of the first and the last part of an hour
_CRAWLS = ("live", "judge", "pages", "frontier", "hubs", "hosts", "exports")
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


def make_crawl(path: Path, pages: int = _PAGES, waiting: int = _WAITING, seed: int = 1) -> None:
    """Generate the store of a crawl in a folder."""
    rng = Random(seed)
    path.mkdir(parents=True)
    about = {
        "topic": "/Sports/Cycling",
        "strategy": "best-first",
        "critic": "models/demo",
        "critic_name": "models/demo",
        "web": "live",
        "random_state": "0",
    }
    store = CrawlStore.create(path / "crawl.db", about)
    total = pages + waiting
    began = datetime(2026, 1, 1, tzinfo=UTC)
    first = rng.random

    def url(n: int) -> NewUrl:
        host = n % _HOSTS
        return NewUrl(
            id=n,
            url=f"https://host-{host}.example/section-{n % 97}/page-{n}.html",
            host=host,
            depth=min(n // 1000, 20),
            referrer=None if n < 10 else int(n * first() % pages),
            score=None if n < 10 else round(first(), 6),
            state=schema.FETCHED if n < pages else schema.QUEUED,
        )

    def page(n: int) -> PageRow:
        relevance = round(first() ** (1 + n / pages), 6)
        return PageRow(
            seq=n + 1,
            url=n,
            status=200 if n % 50 else 404,
            relevance=relevance if n % 50 else 0.0,
            topic="/Sports/Cycling" if relevance > 0.5 else "/Home/Cooking",
            score=round(first(), 6),
            fetched_at=(began + timedelta(seconds=n)).isoformat(),
            content_type="text/html",
            size=30_000,
            title=f"A page about wheels, number {n}",
            digest=n.to_bytes(16, "big"),
            links=_LINKS,
            dropped=2,
        )

    def link(n: int) -> LinkRow:
        return LinkRow(
            id=n,
            source=n // _LINKS,
            target=int(first() * total),
            anchor=f"words of link {n}",
            dom_position=n % 300,
            score=round(first(), 6),
            model_version=0,
        )

    with store.connection() as connection:
        for table, rows in (
            ("host", enumerate(f"host-{n}.example" for n in range(_HOSTS))),
            ("url", map(url, range(total))),
            ("page", map(page, range(pages))),
            ("link", map(link, range(pages * _LINKS))),
            ("events", [(began.isoformat(), 0, "start", "budget=200000")]),
        ):
            connection.executemany(schema.INSERT[table], rows)
    store.close()


@contextmanager
def studio(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """Serve a folder; return the address and the process."""
    command = [sys.executable, "-m", "focuscrawl", "studio", str(folder), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--no-browser"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_STATE_HOME": str(folder / ".state")},  # folder of tokens
    )
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found is not None
    try:
        yield found[0], psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a headless browser."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=_FLAGS)
        yield browser
        browser.close()


def paint(rounds: int) -> None:
    """Print the time of the first paint of each page."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        began = time.monotonic()
        make_crawl(folder / "crawls" / "large")
        print(f"made in {time.monotonic() - began:.0f} s")
        addresses = ["/", "/crawls/new", "/topics/new"]
        addresses += [f"/crawls/crawls/large/{part}" for part in _CRAWLS]
        url = "https://host-5.example/section-5/page-5.html"
        addresses.append(f"/crawls/crawls/large/page?url={url}")
        with studio(folder) as (address, _), chromium() as browser:
            tab = browser.new_context().new_page()
            tab.goto(address)
            for each in addresses:
                page = address.partition("/?")[0] + each
                seconds = sorted(_first_paint(tab, page) for _ in range(rounds))
                median = statistics.median(seconds)
                print(f"{each:60} {median:.3f} s ({seconds[0]:.3f} to {seconds[-1]:.3f})")


def _first_paint(tab: Page, address: str) -> float:
    answer = tab.goto(address, wait_until="load")
    assert answer is not None
    assert answer.ok, f"{address}: HTTP {answer.status}"
    script = """() => new Promise(done => {
      const seen = () => performance.getEntriesByName('first-contentful-paint')[0];
      const look = () => seen() ? done(seen().startTime) : setTimeout(look, 5);
      look();
    })"""
    painted: float = tab.evaluate(script)
    return painted / 1000.0


def _crawl(
    folder: Path, name: str, budget: int, scale: int, counted: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a crawl of the demo web, `scale` times its size; return when the store exists.

    `counted` is a file for the number of instructions, if ``perf`` is available.
    """
    arguments = {"web": f"demo:{scale}", "topic": "/Sports/Cycling", "strategy": "best-first"}
    arguments |= {"budget": str(budget), "crawl_dir": name}
    given = [part for key, value in arguments.items() for part in ("-a", f"{key}={value}")]
    command = [sys.executable, "-m", "focuscrawl", "crawl", *given]
    if counted is not None and shutil.which("perf"):
        command = ["perf", "stat", "-x,", "-e", "instructions:u", "-o", str(counted), *command]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    while not CrawlFolder(folder / name).exists:
        assert process.poll() is None, f"the crawl has ended with code {process.returncode}"
        time.sleep(0.01)
    return process


@dataclass(frozen=True)
class _Cost:
    """Cost of a crawl: pages/s from the first fetch to the last, and processor seconds.

    The number of instructions is that of the program alone and does not depend on other load; None
    without ``perf``.
    """

    pace: float
    crawl: float
    studio: float
    instructions: int | None


def beside(rounds: int, budget: int) -> None:
    """Print the cost of a crawl with a tab that shows the crawl, relative to one without."""
    pairs = []
    with TemporaryDirectory() as temporary, chromium() as browser:
        folder = Path(temporary)
        with studio(folder) as (address, process):
            tab = browser.new_context().new_page()
            tab.goto(address)
            for number in range(rounds):
                pair = {}
                for shown in (number % 2 == 0, number % 2 != 0):
                    name = f"crawl-{number}-{'with' if shown else 'without'}"
                    tab.goto("about:blank")
                    before, served = _processor_of_children(), _processor_of(process)
                    counted = folder / f"{name}.txt"
                    crawling = _crawl(folder, name, budget, scale=4, counted=counted)
                    if shown:
                        tab.goto(f"{address.partition('/?')[0]}/crawls/{name}/live")
                    assert crawling.wait() == 0
                    pair[shown] = _Cost(
                        _pace(folder / name),
                        _processor_of_children() - before,
                        _processor_of(process) - served,
                        _instructions(counted),
                    )
                    print(name, pair[shown], flush=True)
                pairs.append(pair)
    instructions = [(pair[True].instructions, pair[False].instructions) for pair in pairs]
    for what, ratios in (
        ("pages/s", [pair[True].pace / pair[False].pace for pair in pairs]),
        ("processor", [pair[True].crawl / pair[False].crawl for pair in pairs]),
        ("instructions", [a / b for a, b in instructions if a is not None and b is not None]),
    ):
        if not ratios:
            continue
        shown_ratios = ", ".join(f"{each:.3f}" for each in ratios)
        print(f"{what}, with / without: {statistics.median(ratios):.3f} ({shown_ratios})")
        if rounds >= _ROUNDS:
            low, high = sorted(ratios)[1], sorted(ratios)[-2]
            covers = 1.0 - 2.0 * (1 + rounds) / 2.0**rounds
            print(f"  the median is between {low:.3f} and {high:.3f} with {covers:.0%}")
    served = statistics.median(pair[True].studio / pair[True].crawl for pair in pairs)
    print(f"processor of the studio, of that of the crawl: {served:.3f}")


def _instructions(counted: Path) -> int | None:
    """Return the number of instructions that ``perf`` counted."""
    found = re.search(r"^(\d+),", counted.read_text(), re.MULTILINE) if counted.exists() else None
    return int(found[1]) if found is not None else None


def _processor_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # of finished child processes
    return used.ru_utime + used.ru_stime


def _processor_of(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


def _pace(crawl: Path) -> float:
    """Return pages/s from the first fetch to the last."""
    store = open_store(crawl)
    try:
        first, last, n = store.row("SELECT min(fetched_at), max(fetched_at), max(seq) FROM page")
    finally:
        store.close()
    took = datetime.fromisoformat(last) - datetime.fromisoformat(first)
    return float((n - 1) / took.total_seconds())


def hour(minutes: int) -> None:
    """Print memory of studio and tab every minute of one long crawl, then the growth."""
    seen = []
    with TemporaryDirectory() as temporary, chromium() as browser:
        folder = Path(temporary)
        with studio(folder) as (address, process):
            tab = browser.new_context().new_page()
            tab.goto(address)
            crawling = _crawl(folder, "crawl", budget=0, scale=400)
            os.setpriority(os.PRIO_PROCESS, crawling.pid, _NICE)  # leaves time to other programs
            tab.goto(f"{address.partition('/?')[0]}/crawls/crawl/live")
            session = tab.context.new_cdp_session(tab)
            began = time.monotonic()
            for minute in range(minutes + 1):
                tab.wait_for_timeout(max(0.0, began + 60 * minute - time.monotonic()) * 1000)
                assert crawling.poll() is None, "the crawl has ended"
                session.send("HeapProfiler.collectGarbage")
                memory = process.memory_full_info()
                state = {
                    "minute": minute,
                    "fetched": int(tab.inner_text("#fetched").replace(",", "") or 0),
                    "studio_rss_mb": memory.rss / 1e6,
                    "studio_pss_mb": memory.pss / 1e6,
                    "tab_pss_mb": _renderers(browser) / 1e6,
                    "heap_mb": session.send("Runtime.getHeapUsage")["usedSize"] / 1e6,
                    "elements": tab.evaluate("document.getElementsByTagName('*').length"),
                    "studio_processor": _processor_of(process),
                }
                seen.append(state)
                print(
                    json.dumps({key: round(value, 2) for key, value in state.items()}), flush=True
                )
            crawling.terminate()
            crawling.wait()
    part = max(1, min(_PART, len(seen) // 2))
    for key in ("studio_rss_mb", "studio_pss_mb", "tab_pss_mb", "heap_mb", "elements"):
        of = [state[key] for state in seen[1:]]  # without the first, of pages just opened
        first, last = of[:part], of[-part:]
        print(
            f"{key}: median of the first {part} minutes {statistics.median(first):.2f} "
            f"({min(first):.2f} to {max(first):.2f}), of the last {statistics.median(last):.2f} "
            f"({min(last):.2f} to {max(last):.2f})"
        )


def _renderers(browser: Browser) -> int:
    """Return the proportional memory of the browser's tab processes in bytes."""
    about = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
    pids = [each["id"] for each in about["processInfo"] if each["type"] == "renderer"]
    return sum(psutil.Process(pid).memory_full_info().pss for pid in pids)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("paint", "beside", "hour"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=6000)
    parser.add_argument("--minutes", type=int, default=60)
    given = parser.parse_args()
    if given.what == "paint":
        paint(given.rounds)
    elif given.what == "beside":
        beside(given.rounds, given.budget)
    else:
        hour(given.minutes)


if __name__ == "__main__":
    main()
