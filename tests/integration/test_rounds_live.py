"""Rounds of the live Web: real servers on loopback, a process of Scrapy a bucket."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from longer import long

from focuscrawl.crawl import CrawlFolder
from focuscrawl.report.measures import load_pages
from focuscrawl.webs import open_web
from focuscrawl.webs.capture_index import write_index

from .live_rounds import (
    LONG,
    PROCESSES,
    assert_polite,
    begin,
    pages_of,
    settings,
    to_the_end,
    write_plan,
)
from .running import BICYCLES, Kept, crawl
from .spark import why_not

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import LocalWeb


def test_rounds_fetch_what_a_crawl_of_one_process_fetches(
    local_web: LocalWeb, tmp_path: Path
) -> None:
    plan = write_plan(tmp_path / "plan.toml", local_web)
    to_the_end(begin(plan, tmp_path / "tables", "--folder", str(tmp_path / "crawl")))
    assert_polite(local_web)
    given = {**settings(local_web), **BICYCLES, "seeds": f"{local_web.origins['a']}/"}
    crawl(tmp_path / "one", **given, budget=1000)
    assert pages_of(tmp_path / "crawl") == pages_of(tmp_path / "one")
    assert not (tmp_path / "tables" / "under-way").exists()
    recorded = [*(tmp_path / "tables").glob("recorded/*/*-pages.warc.gz")]
    write_index(recorded, tmp_path / "pages.cdxj", tmp_path)
    assert {*open_web(str(tmp_path / "pages.cdxj")).urls()} == {
        *open_web(str(tmp_path / "one" / "pages.warc.gz")).urls()
    }


@pytest.mark.parametrize(
    ("after", "killed", "master"),
    long((8, "all", PROCESSES), (13, "driver", PROCESSES), (10, "driver", "local[2]")),
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
    process.communicate(timeout=LONG)  # until nobody has its standard output any more
    asked_before = len(local_web.requests())
    fetched: set[str] = set()
    for folder in root.glob("under-way/*"):
        with suppress(sqlite3.OperationalError):  # just begun: there is no store yet
            fetched |= {*Kept(folder).urls}
    fetched |= {
        url for file in root.glob("pages/*/*") for url in pq.read_table(file)["url"].to_pylist()
    }
    to_the_end(begin(plan, root, "--folder", str(tmp_path / "crawl"), master=master))
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
    process.communicate(timeout=LONG)
    (folder,) = tmp_path.glob("tables/under-way/*")
    while CrawlFolder(folder).in_use:
        time.sleep(0.02)


def test_an_address_of_a_private_network_is_not_connected_to(
    local_web: LocalWeb, tmp_path: Path
) -> None:
    plan = write_plan(tmp_path / "plan.toml", local_web, budget=3, buckets=1)
    kept = plan.read_text(encoding="utf-8").splitlines()
    kept = [line for line in kept if not line.startswith("FOCUSCRAWL_PRIVATE_ADDRESSES")]
    plan.write_text("\n".join(kept), encoding="utf-8")
    before = len(local_web.requests())
    said = to_the_end(begin(plan, tmp_path / "tables", "--folder", str(tmp_path / "crawl")))
    assert said.splitlines()[-2] == "the frontier is empty: no link is left to follow"
    ((error,),) = Kept(tmp_path / "crawl").query("SELECT error FROM pages")
    assert error.startswith("PrivateAddressError: 127.0.0.2 is a loopback address")
    assert len(local_web.requests()) == before
