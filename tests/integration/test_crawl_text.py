"""The main text of relevant pages, taken while a crawl goes on: in feeds, and in its folder."""

from __future__ import annotations

import csv
import json
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from focuscrawl.text.text_store import FILE

from .running import DEMO, crawl, crawl_until
from .typed import focuscrawl

pytest.importorskip("trafilatura")
pytest.importorskip("resiliparse")
parquet = pytest.importorskip("pyarrow.parquet")

TEXT = {"FOCUSCRAWL_TEXT": 1, "FOCUSCRAWL_TEXT_EXTRACTOR": "resiliparse"}


def collected(folder: Path, out: Path) -> list[dict[str, Any]]:
    given = ("collect", folder, "--out", out, "--extractor", "resiliparse", "--near-duplicates")
    focuscrawl(*given)
    return [json.loads(line) for line in out.read_text().splitlines()]


def kept(folder: Path) -> set[bytes]:
    with sqlite3.connect(folder / FILE) as database:
        found = {body for (body,) in database.execute("SELECT body FROM page")}
    database.close()
    return found


def test_texts_are_in_feeds_and_are_not_taken_again(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    feeds = [part for end in ("jsonl", "parquet", "csv") for part in ("-O", tmp_path / f"c.{end}")]
    crawl(folder, *map(str, feeds), **TEXT, **DEMO, budget=60)
    items = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert sorted(item["seq"] for item in items) == list(range(1, 61))
    for item in items:
        wanted = item["relevance"] >= 0.5 and item["duplicate_of"] is None
        assert bool(item["text"]) == wanted, item
        assert item["extractor"] in {"resiliparse", "visible text", None}
    rows = parquet.read_table(tmp_path / "c.parquet").to_pylist()
    assert [row["text"] for row in rows] == [item["text"] for item in items]
    with (tmp_path / "c.csv").open(newline="") as file:
        assert [row["hash"] or None for row in csv.DictReader(file)] == [
            item["hash"] for item in items
        ]

    texts = kept(folder)
    hashes = {item["url"]: item["hash"] for item in items}
    pages = collected(folder, tmp_path / "pages.jsonl")
    assert kept(folder) == texts
    assert len(pages) > 20
    assert all(page["hash"] == hashes[page["url"]] for page in pages)


@pytest.mark.long
def test_a_crawl_that_is_killed_has_all_texts_in_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    killed = crawl_until(folder, 20, signal.SIGKILL, **TEXT, **DEMO, budget=60)
    assert killed.returncode == -signal.SIGKILL
    resumed = crawl(folder, **TEXT, **DEMO, budget=60)
    before = kept(folder)
    assert collected(folder, tmp_path / "pages.jsonl")
    relevant = resumed.kept.query(
        "SELECT substr(digest, 1, 16) FROM page WHERE relevance >= 0.5 AND duplicate_of IS NULL"
    )
    assert kept(folder) == {digest for (digest,) in relevant} > set()
    assert before <= kept(folder)
