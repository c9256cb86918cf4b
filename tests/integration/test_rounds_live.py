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

from focuscrawl.report.measures import load_pages

from .impatience import impatient
from .running import ROOT, Kept, crawl

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import LocalWeb

DELAY = 0.2
_LONG = 600  # seconds after which a process hangs


def settings(local_web: LocalWeb) -> dict[str, object]:
    return {
        "DOWNLOAD_DELAY": DELAY,
        "DOWNLOAD_DELAY_JITTER": 0,
        "AUTOTHROTTLE_ENABLED": 0,
        "RETRY_TIMES": 1,
        "DOWNLOAD_MAXSIZE": 100_000,
        "FOCUSCRAWL_PRIVATE_ADDRESSES": "127.0.0.0/8",
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


def begin(plan: Path, root: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "focuscrawl", "rounds", str(plan), "--out", str(root)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'tests'}{os.pathsep}{ROOT}"}
    return subprocess.Popen(
        [*command, "--master", "processes[2]", *more],
        cwd=ROOT,
        env=environment,
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
        pages = [each for each in own if each["path"] != "/robots.txt"]
        began = [each["began"] for each in pages]
        # one may be held up on its way, and the next one seem to come early: so five at a time
        spans = [last - first for first, last in zip(began, began[5:], strict=False)]
        assert min(spans) > 0.5 * 5 * DELAY
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
    assert not [*(tmp_path / "tables" / "under-way").iterdir()]


@pytest.mark.parametrize("after", long(8, 13, 18))
def test_what_was_fetched_when_all_were_killed_is_not_fetched_again(
    after: int, local_web: LocalWeb, tmp_path: Path
) -> None:
    plan, root = write_plan(tmp_path / "plan.toml", local_web, round=10), tmp_path / "tables"
    before = len(local_web.requests())
    process = begin(plan, root)
    while len(local_web.requests()) < before + after:
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=_LONG)
    killed = len(local_web.requests())
    fetched: set[str] = set()
    for folder in root.glob("under-way/*"):
        with suppress(sqlite3.OperationalError):  # just begun: there is no store yet
            fetched |= {*Kept(folder).urls}
    fetched |= {
        url for file in root.glob("pages/*/*") for url in pq.read_table(file)["url"].to_pylist()
    }
    process = begin(plan, root, "--folder", str(tmp_path / "crawl"))
    said = process.communicate(timeout=_LONG)[0]
    assert process.returncode == 0, said
    assert_polite(local_web, before)
    asked = {
        f"{local_web.origins[each['site']]}{each['path']}"
        for each in local_web.requests()[killed:]
    }
    assert fetched
    assert not asked & fetched
    assert len(pages_of(tmp_path / "crawl")) == len(load_pages(str(tmp_path / "crawl")))
