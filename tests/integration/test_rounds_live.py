"""Rounds of the live Web: real servers on loopback, a process of Scrapy a bucket."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from longer import long

from focuscrawl.crawl import CrawlFolder
from focuscrawl.report.measures import load_pages
from focuscrawl.webs import open_web
from focuscrawl.webs.capture_index import write_index

from .impatience import impatient
from .running import ROOT, Kept, crawl
from .spark import environment, why_not

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import LocalWeb

DELAY = 0.2
JITTER = 0.05  # seconds that the event loop may be held between its clock and that of the test
#: requests say when they were sent: what is seen when they arrive has waited for a processor
STAMPING = "server.downloadhandlers.Stamping"
PROCESSES = "processes[2]"
_LONG = 600  # seconds after which a process hangs


def settings(local_web: LocalWeb) -> dict[str, object]:
    return {
        "DOWNLOAD_DELAY": DELAY,
        "DOWNLOAD_DELAY_JITTER": 0,
        "AUTOTHROTTLE_ENABLED": 0,
        "RETRY_TIMES": 1,
        "DOWNLOAD_MAXSIZE": 100_000,
        "FOCUSCRAWL_PRIVATE_ADDRESSES": "127.0.0.0/8",
        "DOWNLOAD_HANDLERS": json.dumps(dict.fromkeys(("http", "https"), STAMPING)),
    } | impatient(1, f"{local_web.origins['slow']}/", only=True)


def write_plan(path: Path, local_web: LocalWeb, **more: Any) -> Path:
    plan: dict[str, Any] = {
        "topic": "bicycle",
        "critic": "server.critic:judge",
        "strategy": "best-first",
        "seeds": f"{local_web.origins['a']}/",
        "budget": 1000,
        "round": 12,
        "buckets": 2,
    } | more
    lines = [f"{key} = {json.dumps(value)}" for key, value in plan.items()]
    lines += ["[settings]", *(f"{k} = {json.dumps(v)}" for k, v in settings(local_web).items())]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def begin(plan: Path, root: object, *more: str, master: str = PROCESSES) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "focuscrawl", "rounds", str(plan), "--out", str(root)]
    told = os.environ | {"PYTHONPATH": str(ROOT)} if master == PROCESSES else environment()
    return subprocess.Popen(
        [*command, "--master", master, *more],
        cwd=ROOT,
        env=told | {"PYTHONPATH": f"{ROOT / 'tests'}{os.pathsep}{told['PYTHONPATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def pages_of(folder: Path) -> dict[str, tuple[float, str | None]]:
    pages = load_pages(str(folder))
    rows = zip(pages["url"], pages["relevance"], pages["duplicate_of"], strict=True)
    return {url: (relevance, twin) for url, relevance, twin in rows}


def assert_polite(local_web: LocalWeb, since: int = 0) -> None:
    requests = local_web.requests()[since:]
    for site in ("a", "b", "c"):
        own = [each for each in requests if each["site"] == site]
        own.sort(key=lambda each: float(each["began"]))
        assert all(after["began"] >= before["ended"] for before, after in pairwise(own))
        # robots.txt is asked for just before the first page
        sent = [float(each["sent_at"]) for each in own if each["path"] != "/robots.txt"]
        least = min(after - before for before, after in pairwise(sent))
        print(f"{site}: {len(sent)} pages, {least:.3f} s apart at least")  # noqa: T201 - for -s
        assert least > DELAY - JITTER
        assert "/private/diary" not in {each["path"] for each in own}


def test_rounds_fetch_what_a_crawl_of_one_process_fetches(
    local_web: LocalWeb, tmp_path: Path
) -> None:
    process = begin(
        write_plan(tmp_path / "plan.toml", local_web),
        tmp_path / "tables",
        *("--folder", str(tmp_path / "crawl")),
    )
    said = process.communicate(timeout=_LONG)[0]
    assert process.returncode == 0, said
    assert_polite(local_web)
    options = [
        part for name, value in settings(local_web).items() for part in ("-s", f"{name}={value}")
    ]
    told = {"topic": "bicycle", "critic": "server.critic:judge", "strategy": "best-first"}
    one = crawl(
        tmp_path / "one", *options, **told, seeds=f"{local_web.origins['a']}/", budget=1000
    )
    assert one.returncode == 0, one.stderr
    assert pages_of(tmp_path / "crawl") == pages_of(tmp_path / "one")
    assert not (tmp_path / "tables" / "under-way").exists()
    recorded = [*(tmp_path / "tables").glob("recorded/*/*-pages.warc.gz")]
    write_index(recorded, tmp_path / "pages.cdxj", tmp_path)
    assert {*open_web(str(tmp_path / "pages.cdxj")).urls()} == {
        *open_web(str(tmp_path / "one" / "pages.warc.gz")).urls()
    }


@pytest.mark.parametrize(
    ("after", "killed", "master"),
    long(
        (8, "all", PROCESSES),
        (13, "driver", PROCESSES),
        (18, "driver", PROCESSES),
        (10, "driver", "local[2]"),
    ),
)
def test_what_was_fetched_when_it_was_killed_is_not_fetched_again(
    after: int, killed: str, master: str, local_web: LocalWeb, tmp_path: Path
) -> None:
    if master != PROCESSES and why_not() is not None:
        pytest.skip(str(why_not()))
    plan, root = write_plan(tmp_path / "plan.toml", local_web, round=10), tmp_path / "tables"
    before = len(local_web.requests())
    process = begin(plan, root, master=master)
    while len(local_web.requests()) < before + after:
        assert process.poll() is None
        time.sleep(0.02)
    if killed == "all":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate(timeout=_LONG)  # until nobody has its standard output any more
    asked_before = len(local_web.requests())
    fetched: set[str] = set()
    for folder in root.glob("under-way/*"):
        with suppress(sqlite3.OperationalError):  # just begun: there is no store yet
            fetched |= {*Kept(folder).urls}
    fetched |= {
        url for file in root.glob("pages/*/*") for url in pq.read_table(file)["url"].to_pylist()
    }
    process = begin(plan, root, "--folder", str(tmp_path / "crawl"), master=master)
    said = process.communicate(timeout=_LONG)[0]
    assert process.returncode == 0, said
    assert_polite(local_web, before)
    asked = {
        f"{local_web.origins[each['site']]}{each['path']}"
        for each in local_web.requests()[asked_before:]
    }
    assert fetched
    assert not asked & fetched
    assert len(pages_of(tmp_path / "crawl")) == len(load_pages(str(tmp_path / "crawl")))


def test_a_process_that_fetches_ends_with_whoever_began_it(
    local_web: LocalWeb, tmp_path: Path
) -> None:
    plan = write_plan(tmp_path / "plan.toml", local_web, seeds=f"{local_web.origins['slow']}/")
    kept = plan.read_text(encoding="utf-8")
    plan.write_text(kept.replace("TEST_SECONDS = 1", "TEST_SECONDS = 99"), encoding="utf-8")
    before = len(local_web.requests())
    process = begin(plan, tmp_path / "tables")
    while len(local_web.requests()) == before:  # for robots.txt
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.communicate(timeout=_LONG)
    (folder,) = tmp_path.glob("tables/under-way/*")
    while CrawlFolder(folder).in_use:
        time.sleep(0.02)


def test_an_address_of_a_private_network_is_not_connected_to(
    local_web: LocalWeb, tmp_path: Path
) -> None:
    plan = write_plan(tmp_path / "plan.toml", local_web, budget=3)
    kept = plan.read_text(encoding="utf-8").splitlines()
    kept = [line for line in kept if not line.startswith("FOCUSCRAWL_PRIVATE_ADDRESSES")]
    plan.write_text("\n".join(kept), encoding="utf-8")
    before = len(local_web.requests())
    process = begin(plan, tmp_path / "tables", "--folder", str(tmp_path / "crawl"))
    said = process.communicate(timeout=_LONG)[0]
    assert said.splitlines()[-2] == "the frontier is empty: no link is left to follow"
    ((error,),) = Kept(tmp_path / "crawl").query("SELECT error FROM pages")
    assert error.startswith("PrivateAddressError: 127.0.0.2 is a loopback address")
    assert len(local_web.requests()) == before
