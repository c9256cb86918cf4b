"""``focuscrawl report`` and ``focuscrawl why`` on crawls that Scrapy made of the demo web."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import lxml.html
import pandas as pd
import pytest

from focuscrawl.report.measures import load_pages
from focuscrawl.webs import open_web

from . import warm
from .running import words
from .typed import focuscrawl, mistaken

WEB = "demo:0.1"
BUDGET = 60
CRITIC = """
def judge(pages):
    return [0.9 if "jazz" in page.url else 0.2 for page in pages]
"""


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two crawls of the same web, by two strategies."""
    folder = tmp_path_factory.mktemp("crawls")
    (folder / "judging.py").write_text(CRITIC)
    seed = next(url for url in open_web(WEB).urls() if "jazz" in url)
    for strategy in ("breadth-first", "best-first"):
        arguments = {
            "topic": "/Arts/Music/Jazz",
            "critic": "judging:judge",
            "web": WEB,
            "seeds": seed,
            "budget": BUDGET,
            "strategy": strategy,
        }
        settings = {"SCRAPY_SETTINGS_MODULE": "focuscrawl.settings"}
        line = words(folder / strategy, **arguments)
        done = warm.run(line, cwd=folder, env=os.environ | settings)
        assert done.returncode == 0, done.stderr
    return [folder / "breadth-first", folder / "best-first"]


@pytest.fixture
def crawl(crawls: list[Path], tmp_path: Path) -> Path:
    """A crawl of its own for a test that changes it."""
    return Path(shutil.copytree(crawls[1], tmp_path / "crawl"))


def test_report_writes_curves_and_a_page_beside_the_crawl(crawl: Path) -> None:
    result = focuscrawl("report", crawl)
    assert f"the budget of {BUDGET} fetches is spent" in result.output
    for name in ("loss.png", "report.html"):
        written = crawl / "report" / name
        assert written.stat().st_size > 1000
        assert str(written) in result.output
    page = lxml.html.document_fromstring((crawl / "report" / "report.html").read_text("utf-8"))
    assert len(page.xpath("//img")) == 3  # type: ignore[arg-type]
    assert "not yet found" in result.output
    assert page.xpath("//img[@alt='estimated recall against fetches']")
    assert "best-first, Jazz" in str(page.findtext(".//h1"))


def test_report_compares_crawls(crawls: list[Path], tmp_path: Path) -> None:
    table = tmp_path / "fetches.csv"
    result = focuscrawl("report", *crawls, crawls[0], "--out", tmp_path / "both", "--csv", table)
    rows = [line.split() for line in result.output.splitlines()]
    start = next(i for i, row in enumerate(rows) if row[:2] == ["crawl", "fetched"])
    losses = [float(1 - load_pages(folder)["relevance"].mean()) for folder in crawls]
    assert [row[0] for row in rows[start + 1 : start + 3]] == ["breadth-first", "best-first"]
    assert rows[start + 3] == []  # a crawl named twice is one crawl
    assert rows[start + 1][2] == f"{losses[0]:.3f}"
    assert rows[start + 2][-1] == f"{1 - losses[1] / losses[0]:+.0%}"
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == [
        "loss.png",
        "report.html",
    ]
    assert "learning" not in result.output
    assert not (crawls[0] / "report").exists()
    plain, focused = [int((load_pages(folder)["relevance"] > 0.5).sum()) for folder in crawls]
    assert plain < focused
    assert (
        f"relevant pages in {BUDGET} fetches each: "
        f"{plain} with breadth-first, {focused} with best-first"
    ) in result.output.splitlines()

    assert str(table) in result.output
    fetches = pd.read_csv(table)
    assert len(fetches) == 2 * BUDGET
    for name, group in fetches.groupby("crawl"):
        pages = load_pages(str(name))
        assert group["seq"].tolist() == list(range(1, BUDGET + 1))
        assert group["url"].tolist() == pages["url"].tolist()
        assert group["harvest_rate"].iloc[-1] == pytest.approx(pages["relevance"].mean())
        assert group["loss_rate"].iloc[-1] == pytest.approx(1 - pages["relevance"].mean())


def test_report_speaks_of_learning_where_crawls_can_have_learned(
    crawls: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report of several goes to the working folder."""
    monkeypatch.chdir(tmp_path)
    again = shutil.copytree(crawls[0], tmp_path / "again")
    result = focuscrawl("report", crawls[0], again)
    assert "+0.000, no learning" in result.output
    assert (tmp_path / "report" / "learning.png").is_file()


def test_report_does_not_wait_for_a_crawl_that_writes(crawl: Path) -> None:
    with closing(sqlite3.connect(crawl / "crawl.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM events WHERE kind = 'stop'")
        result = focuscrawl("report", crawl)
        assert "budget" in result.output
        writer.execute("COMMIT")
    assert "killed; the same command resumes the crawl" in focuscrawl("report", crawl).output


def test_user_errors_are_one_line_and_leave_nothing_behind(crawl: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    calls: list[list[str | Path]] = [
        ["report", empty],
        ["report", crawl, empty],
        ["report", tmp_path / "absent"],
        ["why", empty, "http://a.example/"],
        ["why", crawl, "http://a.example/"],
        ["report", crawl, "--csv", tmp_path / "absent" / "fetches.csv"],
        ["report", crawl, "--out", crawl / "crawl.db"],
    ]
    for arguments in calls:
        mistaken(*arguments)
    assert list(empty.iterdir()) == []
    assert not (tmp_path / "absent").exists()


def test_a_store_of_another_schema_is_left_alone(crawl: Path) -> None:
    with closing(sqlite3.connect(crawl / "crawl.db")) as store, store:
        store.execute("UPDATE meta SET value = '999' WHERE key = 'schema_version'")
    assert "crawl again into a new crawl_dir" in mistaken("report", crawl)
    assert not (crawl / "report").exists()


def test_why_explains_the_last_fetch(crawls: list[Path]) -> None:
    last = load_pages(crawls[1]).iloc[-1]
    result = focuscrawl("why", crawls[1], last["url"])
    lines = result.output.splitlines()
    assert lines[0] == last["url"]
    assert f"fetch {BUDGET}, relevance" in lines[1]
    assert any(line.startswith("links ") and "known before its fetch" in line for line in lines)
    path = lines[next(i for i, line in enumerate(lines) if line.startswith("path ")) + 2 :]
    assert path[0].split()[0] == "1"
    assert path[-1].split()[-1] == last["url"]
    assert len(path) == last["depth"] + 1
