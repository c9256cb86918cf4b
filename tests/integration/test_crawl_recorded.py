"""Crawls of recordings: small, cut short, and real."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from focuscrawl.webs import WarcRecorder

from .recording import record
from .running import BICYCLES, crawl

PAGES = 30


def _url(number: int) -> str:
    return f"http://ring.example/{number}"


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording of pages that link to the next two, and to one that was not recorded."""
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    pages = []
    for number in range(PAGES):
        links = "".join(
            f'<a href="{_url(to)}">{to}</a>'
            for to in ((number + 1) % PAGES, (number + 2) % PAGES, PAGES + 5)
        )
        pages.append((_url(number), f"<title>{number}</title><p>bicycle {number} {links}"))
    return record(tmp_path / "ring.warc.gz", pages)


def test_a_budget_beyond_the_recording_ends_with_an_empty_frontier(
    ring: Path, tmp_path: Path
) -> None:
    done = crawl(tmp_path / "crawl", **BICYCLES, web=ring, seeds=_url(0), budget=1000)
    assert sorted(done.kept.urls) == sorted(map(_url, range(PAGES)))
    assert done.kept.stop_reasons == ["frontier_empty"]
    assert done.kept.query("SELECT DISTINCT links, dropped FROM pages") == [(3, 1)]
    assert "cut or damaged" not in done.stderr


@pytest.mark.webs
def test_a_real_web_is_crawled_the_same_with_and_without_a_break(
    webs_dir: Path, webkb_warc: Path, tmp_path: Path
) -> None:
    arguments = {
        "web": webkb_warc,
        "critic": "models/demo",
        "topic": "/Computers/Databases",
        "seeds": webs_dir / "webkb" / "portal.txt",
        "strategy": "best-first",
    }
    whole = crawl(tmp_path / "whole", fresh=True, **arguments, budget=150)
    assert [seq for seq, _ in whole.kept.order] == list(range(1, 151))
    crawl(tmp_path / "parts", **arguments, budget=60)
    parts = crawl(tmp_path / "parts", **arguments, budget=150)
    assert parts.kept.order == whole.kept.order
    links = "SELECT * FROM links ORDER BY source, dom_position, target, anchor"
    assert parts.kept.query(links) == whole.kept.query(links)


def test_a_recorded_body_that_is_too_large_costs_a_fetch(ring: Path, tmp_path: Path) -> None:
    stream = zlib.compressobj(9, wbits=31)
    bomb = b"".join(stream.compress(bytes(1 << 20)) for _ in range(40)) + stream.flush()
    with WarcRecorder(ring) as recorder:
        recorder.record(
            request_method="GET",
            url=_url(PAGES + 5),  # which every page links to
            request_headers=[],
            request_body=b"",
            status=200,
            reason="OK",
            response_headers=[("Content-Type", "text/html"), ("Content-Encoding", "gzip")],
            body_raw=bomb,
            ip=None,
            at=datetime(2024, 1, 1, tzinfo=UTC),
        )
    done = crawl(tmp_path / "crawl", **BICYCLES, web=ring, seeds=_url(0), budget=1000)
    assert "Traceback" not in done.stderr
    assert sorted(done.kept.urls) == sorted(map(_url, [*range(PAGES), PAGES + 5]))
    failed = done.kept.query("SELECT url, status, relevance, error FROM pages WHERE error <> ''")
    assert failed == [(_url(PAGES + 5), 0, 0.0, "too large: the recorded body")]
