"""Settings of Scrapy that change how fast a host is crawled: cached answers, DOWNLOAD_SLOTS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from threading import Barrier
from typing import Any

import pytest

from .running import BICYCLES, QUICK, Kept, crawl
from .small_site import Answers, Site, serve

N = 9  # pages
LONG = 60  # seconds; eight such delays are far more than a crawl takes
SHORT = 0.3


def pages(origin: str) -> Answers:
    links = "".join(f"<a href=/{number}>bicycle {number}</a>" for number in range(1, N))
    home = ("text/html", f"<title>Home</title>a bicycle {links}".encode())
    return {"/": home} | {
        f"/{number}": ("text/html", f"<title>{number}</title>a bicycle".encode())
        for number in range(1, N)
    }


@pytest.fixture
def site() -> Iterator[Site]:
    with serve(pages) as served:
        yield served


def go(site: Site, folder: Path, **given: object) -> Kept:
    given = QUICK | {"DOWNLOAD_DELAY_JITTER": 0} | given
    run = crawl(folder, **given, **BICYCLES, seeds=f"{site.origin}/", budget=N)
    assert "Traceback" not in run.stderr
    assert len(run.kept.urls) == N
    return run.kept


def seconds(kept: Kept) -> float:
    ((first, last),) = kept.query("SELECT min(fetched_at), max(fetched_at) FROM pages")
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def test_cached_answers_cause_no_delay(site: Site, tmp_path: Path) -> None:
    cache = {"HTTPCACHE_ENABLED": 1, "HTTPCACHE_DIR": tmp_path / "cache"}
    go(site, tmp_path / "first", **cache)
    asked = len(site.asked)
    kept = go(site, tmp_path / "second", **cache, DOWNLOAD_DELAY=LONG)
    assert len(site.asked) == asked
    assert seconds(kept) < LONG


def test_urls_that_robots_txt_forbids_cause_no_delay(tmp_path: Path) -> None:
    def forbidden(_: str) -> Answers:
        links = "".join(f"<a href=/x/{number}>bicycle {number}</a>" for number in range(30))
        robots = ("text/plain", b"User-agent: *\nDisallow: /x/")
        return {"/robots.txt": robots, "/": ("text/html", f"a bicycle {links}".encode())}

    with serve(forbidden) as site:
        given = QUICK | {"DOWNLOAD_DELAY": 2, "DOWNLOAD_DELAY_JITTER": 0}
        run = crawl(tmp_path / "crawl", **given, **BICYCLES, seeds=f"{site.origin}/", budget=0)
    ((fetched,),) = run.kept.query("SELECT fetched_at FROM pages")
    ((stopped,),) = run.kept.query("SELECT at FROM events WHERE kind = 'stop'")
    waited = datetime.fromisoformat(stopped) - datetime.fromisoformat(fetched)
    assert waited.total_seconds() < 30  # 30 delays are a minute


def slots(**limits: float) -> str:
    return json.dumps({"127.0.0.1": limits})


def test_a_slot_of_scrapy_sets_the_delay_of_its_host(site: Site, tmp_path: Path) -> None:
    quick = {"DOWNLOAD_DELAY": LONG, "DOWNLOAD_SLOTS": slots(delay=0)}
    assert seconds(go(site, tmp_path / "quick", **quick)) < LONG
    site.times.clear()
    go(site, tmp_path / "slow", DOWNLOAD_SLOTS=slots(delay=SHORT))
    assert median(b - a for a, b in pairwise(site.times)) > 0.9 * SHORT


def test_a_slot_of_scrapy_sets_the_concurrency_of_its_host(site: Site, tmp_path: Path) -> None:
    two = Barrier(2, timeout=10)

    class InPairs(dict[str, tuple[str, bytes]]):
        """Answers two requests at a time."""

        def get(self, path: str, default: Any = None) -> Any:
            if path != "/" and path in self:
                two.wait()
            return super().get(path, default)

    site.answers = InPairs(site.answers)
    go(site, tmp_path / "crawl", DOWNLOAD_SLOTS=slots(concurrency=2))
    assert not two.broken
