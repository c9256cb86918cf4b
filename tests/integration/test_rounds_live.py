"""Rounds of the live Web: real servers on loopback, a process of Scrapy a bucket."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.crawl import CrawlFolder
from focuscrawl.webs import open_web
from focuscrawl.webs.capture_index import write_index

from .live_rounds import assert_polite, pages_of, settings, write_plan
from .running import BICYCLES, Kept, crawl
from .spark import LONG, begin
from .spark import crawl as in_rounds

if TYPE_CHECKING:
    from .conftest import LocalWeb


def test_rounds_fetch_what_a_crawl_of_one_process_fetches(
    local_web: LocalWeb, tmp_path: Path
) -> None:
    plan = write_plan(tmp_path / "plan.toml", local_web, round=48)
    in_rounds(plan, tmp_path / "tables", "--folder", str(tmp_path / "crawl"))
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
    said = in_rounds(plan, tmp_path / "tables", "--folder", str(tmp_path / "crawl"))
    assert said.splitlines()[-2] == "the frontier is empty: no links are left to follow"
    ((error,),) = Kept(tmp_path / "crawl").query("SELECT error FROM pages")
    assert error.startswith("PrivateAddressError: 127.0.0.2 is a loopback address")
    assert len(local_web.requests()) == before
