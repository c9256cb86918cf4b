"""``focuscrawl why`` on a crawl of the apprentice."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from focuscrawl.cli.main import main
from focuscrawl.report.reasons import reasons
from focuscrawl.store import CrawlStore

from .running import crawl

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("why") / "crawl"
    run = crawl(
        folder, web="demo", topic="/Sports/Cycling", seeds="models/demo/seeds.csv", budget=60
    )
    assert run.returncode == 0, run.stderr
    return folder


def test_reasons_add_up_to_the_score(crawled: Path) -> None:
    store = CrawlStore.open(crawled / "crawl.db", read_only=True)
    try:
        rows = store.rows(
            sa.text("SELECT id, score FROM url WHERE state = 0 ORDER BY score DESC LIMIT 20")
        )
        waiting = [(row.id, row.score) for row in rows]
        for number, _ in waiting:
            parts = reasons(store, number)
            assert parts is not None
            assert 0.0 < 1.0 / (1.0 + math.exp(-sum(parts.values()))) < 1.0
        best, worst = (reasons(store, waiting[i][0]) for i in (0, -1))
        assert best is not None
        assert worst is not None
        assert sum(best.values()) >= sum(worst.values()) - 0.5  # scores since the last lesson
    finally:
        store.close()


def test_why_says_what_counts_for_and_against(crawled: Path) -> None:
    store = CrawlStore.open(crawled / "crawl.db", read_only=True)
    try:
        (page,) = store.rows(sa.text("SELECT url FROM pages WHERE seq = 50"))
    finally:
        store.close()
    result = CliRunner().invoke(main, ["why", str(crawled), page.url])
    assert result.exit_code == 0, result.output
    assert re.search(r"^  for +\w[\w ()]* \+\d", result.output, re.MULTILINE)
    assert re.search(r"^  together +[+-]\d+\.\d+ log-odds", result.output, re.MULTILINE)
