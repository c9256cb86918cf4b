"""Crawls of recordings: small, cut short, and real."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from focuscrawl.webs import WarcRecorder

from .running import ROOT, crawl

if TYPE_CHECKING:
    from pathlib import Path

CRITIC = {"topic": "bicycle", "critic": "server.critic:judge", "strategy": "best-first"}
PAGES = 30
WORDS = "homework, lecture, syllabus, assignment, midterm, exam"


def _url(number: int) -> str:
    return f"http://ring.example/{number}"


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording of pages that link to the next two, and to one that was not recorded."""
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "ring.warc.gz"
    with WarcRecorder(path) as recorder:
        for number in range(PAGES):
            links = "".join(
                f'<a href="{_url(to)}">{to}</a>'
                for to in ((number + 1) % PAGES, (number + 2) % PAGES, PAGES + 5)
            )
            recorder.record(
                request_method="GET",
                url=_url(number),
                request_headers=[],
                request_body=b"",
                status=200,
                reason="OK",
                response_headers=[("Content-Type", "text/html")],
                body_raw=f"<title>{number}</title><p>bicycle {number} {links}".encode(),
                ip=None,
                at=datetime(2024, 1, 1, tzinfo=UTC),
            )
    return path


def test_a_budget_beyond_the_recording_ends_with_an_empty_frontier(
    ring: Path, tmp_path: Path
) -> None:
    done = crawl(tmp_path / "crawl", **CRITIC, web=ring, seeds=_url(0), budget=1000)
    assert done.returncode == 0
    assert sorted(done.kept.urls) == sorted(map(_url, range(PAGES)))
    assert done.kept.stop_reasons == ["frontier_empty"]
    assert done.kept.query("SELECT DISTINCT links, dropped FROM pages") == [(3, 1)]
    assert "cut or damaged" not in done.stderr


def test_of_a_recording_cut_short_the_whole_part_is_crawled(ring: Path, tmp_path: Path) -> None:
    whole = ring.read_bytes()
    ring.write_bytes(whole[: len(whole) * 6 // 10])
    done = crawl(tmp_path / "crawl", **CRITIC, web=ring, seeds=_url(0), budget=1000)
    assert done.returncode == 0
    assert PAGES // 3 < len(done.kept.order) < PAGES
    assert set(done.kept.query("SELECT status, relevance FROM pages")) == {(200, 0.9)}
    (said,) = [line for line in done.stderr.splitlines() if "cut or damaged" in line]
    assert "WARNING" in said
    assert str(ring) in said
    assert "whole records" in said


def test_without_a_cached_index_or_with_one_the_crawl_is_the_same(
    ring: Path, tmp_path: Path
) -> None:
    arguments = {**CRITIC, "web": str(ring), "seeds": f"{_url(0)},{_url(9)}"}
    first = crawl(tmp_path / "first", **arguments, budget=20)
    assert (tmp_path / "cache").is_dir()
    second = crawl(tmp_path / "second", **arguments, budget=20)
    assert first.kept.order == second.kept.order
    assert len(first.kept.order) == 20


@pytest.mark.webs
def test_best_first_finds_more_courses_than_breadth_first(
    webs_dir: Path, webkb_warc: Path, tmp_path: Path
) -> None:
    model = tmp_path / "courses"
    train = ["critic", "train", "--words", WORDS, "--out", str(model)]
    subprocess.run(
        [sys.executable, "-c", "from focuscrawl.cli.main import main; main()", *train],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    harvest = {}
    for strategy in ("best-first", "breadth-first"):
        done = crawl(
            tmp_path / strategy,
            web=webkb_warc,
            critic=model,
            topic="/good",
            seeds=webs_dir / "webkb" / "portal.txt",
            strategy=strategy,
            budget=400,
        )
        assert done.returncode == 0, done.stderr
        assert [seq for seq, _ in done.kept.order] == list(range(1, 401))
        harvest[strategy] = done.kept.query("SELECT avg(relevance) FROM pages")[0][0]
    assert harvest["best-first"] > harvest["breadth-first"]
