"""What a page or a server says is obeyed by no terminal, no browser and no spreadsheet."""

from __future__ import annotations

import csv
import json
import os
import pty
import subprocess
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path

import lxml.html
import pytest
from pyarrow import parquet

from focuscrawl.webs import open_web

from .networks import explore, listening
from .running import ROOT, Run
from .typed import focuscrawl

FOCUSCRAWL = str(Path(sys.executable).with_name("focuscrawl"))
SITE: dict[str, object] = {"links": ["/evil"], "moves": {}}


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, str]:
    """A crawl of a page that tries everything, and its URL."""
    folder = tmp_path_factory.mktemp("evil")
    given = {"FOCUSCRAWL_PRIVATE_ADDRESSES": "127.0.0.0/8", "FOCUSCRAWL_WARC": 1}
    items = folder / "items"
    with listening(folder / "connections", SITE) as nets:
        front = nets.url("http://127.0.0.21:{port}/")
        feeds = [
            part for each in ("csv", "jsonl", "parquet") for part in ("-O", f"{items}.{each}")
        ]
        run = explore(folder / "crawl", front, *feeds, **given, LOG_LEVEL="DEBUG")
    kinds = run.kept.query("SELECT status > 0, count(*) FROM pages GROUP BY 1")
    assert kinds == [(0, 3), (1, 5)]  # the odd header field is skipped
    return run, f"{front}evil"


def obeyed(text: str) -> set[str]:
    """Return the characters of `text` that a terminal or a browser would obey."""
    return {c for c in text if c != "\n" and unicodedata.category(c).startswith("C")}


def test_the_log_and_the_summary_are_plain(evil: tuple[Run, str]) -> None:
    run, _ = evil
    assert "evil" in run.stderr  # the page's items are in a log of this level
    assert obeyed(run.stderr) == set()


def test_the_commands_print_plain_text(evil: tuple[Run, str], tmp_path: Path) -> None:
    run, url = evil
    folder = run.kept.folder
    commands: list[tuple[object, ...]] = [("report", folder, "--out", tmp_path / "report")]
    commands += [("why", folder, page) for page in (url, url.replace("/evil", "/status"))]
    commands += [("web", "get", folder / "pages.warc.gz", url, "--head")]
    printed = "".join(focuscrawl(*command).output for command in commands)
    assert "HYPERLINK" in printed
    assert obeyed(printed) == set()


def test_a_page_printed_to_a_terminal_is_plain(evil: tuple[Run, str]) -> None:
    run, url = evil
    ours, theirs = pty.openpty()
    command = [FOCUSCRAWL, "web", "get", str(run.kept.folder / "pages.warc.gz"), url]
    subprocess.run(command, cwd=ROOT, stdout=theirs, check=True)
    os.close(theirs)
    said = b""
    with suppress(OSError):  # nobody has the other end any more
        while piece := os.read(ours, 65536):
            said += piece
    shown = said.decode().replace("\r\n", "\n")
    os.close(ours)
    assert "bicycle" in shown
    assert obeyed(shown) == set()


def test_the_report_runs_no_code_of_a_page(evil: tuple[Run, str], tmp_path: Path) -> None:
    run, _ = evil
    focuscrawl("report", run.kept.folder, "--out", tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;" in text
    assert obeyed(text) == set()
    elements = [each for each in lxml.html.fromstring(text).iter() if isinstance(each.tag, str)]
    tags = {element.tag for element in elements}
    assert not tags & {"script", "iframe", "object", "embed", "form", "link", "base", "svg"}
    values = [(str(name), str(value)) for each in elements for name, value in each.items()]
    assert not [name for name, _ in values if name.startswith("on")]
    assert all(value.startswith("data:image/png") for name, value in values if name == "src")
    assert all(value.startswith("http://") for name, value in values if name == "href")
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    assert ("content", policy) in values


def test_spreadsheets_compute_nothing_of_a_page(evil: tuple[Run, str], tmp_path: Path) -> None:
    run, _ = evil
    focuscrawl("report", run.kept.folder, "--out", tmp_path, "--csv", tmp_path / "report.csv")
    for path in (tmp_path / "report.csv", run.kept.folder.parent / "items.csv"):
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
        titles = [cell for row in rows for cell in row if "HYPERLINK" in cell]
        assert titles, path.name
        assert all(title.startswith("'=") for title in titles)
        texts = [cell for row in rows for cell in row if not _number(cell)]
        assert not [cell for cell in texts if cell.startswith(("=", "+", "-", "@"))]


def test_what_was_said_is_kept_as_it_was_said(evil: tuple[Run, str]) -> None:
    """It is for whoever shows it to make it harmless."""
    run, url = evil
    ((title,),) = run.kept.query(f"SELECT title FROM pages WHERE url = '{url}'")
    said = run.kept.folder.parent / "items"
    lines = said.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    items = [json.loads(line) for line in lines]
    rows = parquet.read_table(said.with_suffix(".parquet")).to_pylist()
    for kept in (title, *(row["title"] for row in [*items, *rows] if row["url"] == url)):
        assert kept.startswith("=HYPERLINK")
        assert {"\x1b", "\u202e"} <= obeyed(kept)
    recorded = open_web(str(run.kept.folder / "pages.warc.gz")).fetch(url)
    assert recorded is not None
    assert b"<title>=HYPERLINK(1) &#27;[41m\x1b]0;owned\x07" in recorded.body


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
