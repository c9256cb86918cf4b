"""Recorded webs: time to build the index, open it, resolve links, and fetch pages.

Run: ``pytest benchmarks/bench_webs.py`` after the tests, which unpack the web.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from focuscrawl.foundation.files import cache_dir
from focuscrawl.webs import RecordedWeb

LINKS = 650  # of a page of Wikipedia
WARC = cache_dir() / "recorded" / "uci.warc"  # unpacked there by the tests

pytestmark = pytest.mark.skipif(not WARC.exists(), reason=f"no recorded web at {WARC}")


@pytest.fixture(scope="module")
def links() -> list[str]:
    """Return as many links as a page has; one in ten is recorded."""
    urls = list(RecordedWeb(WARC).urls())[:LINKS]
    return [url if i % 10 == 0 else f"{url}?{i}" for i, url in enumerate(urls)]


def test_build(benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caches = (str(tmp_path / str(i)) for i in range(10))

    def another_cache() -> None:
        monkeypatch.setenv("FOCUSCRAWL_CACHE", next(caches))

    benchmark.pedantic(RecordedWeb, (WARC,), setup=another_cache, rounds=2)
    speed = WARC.stat().st_size / benchmark.stats["min"] / 1e6
    print(f"\nindex: {speed:.0f} MB/s")


def test_open(benchmark: Any) -> None:
    RecordedWeb(WARC)
    benchmark(RecordedWeb, WARC)


def test_resolve_warm(benchmark: Any, links: list[str]) -> None:
    web = RecordedWeb(WARC)
    web.resolve(links)
    benchmark(web.resolve, links)
    print(f"\nresolve, warm: {benchmark.stats['mean'] / LINKS * 1e6:.2f} us/link")


def test_resolve_cold(benchmark: Any, links: list[str]) -> None:
    def fresh() -> tuple[tuple[Callable[..., Any]], dict[str, Any]]:
        return (RecordedWeb(WARC).resolve,), {}

    benchmark.pedantic(lambda resolve: resolve(links), setup=fresh, rounds=20)
    print(f"\nresolve, cold: {benchmark.stats['mean'] / LINKS * 1e6:.2f} us/link")


def test_fetch(benchmark: Any) -> None:
    web = RecordedWeb(WARC)
    urls = cycle(list(web.urls())[::7])
    benchmark(lambda: web.fetch(next(urls)))
