"""``focuscrawl collect``: from a crawl to what is taken home."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from focuscrawl.cli.main import main
from focuscrawl.text.text_store import FILE
from focuscrawl.webs.opening import open_web

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("trafilatura")
pytest.importorskip("resiliparse")


def collect(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["collect", *map(str, arguments)])


def test_pages_are_taken_home(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.jsonl"
    result = collect(folder, "--out", out, "--language", "en", "--processes", 1)
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) > 10
    assert all(row["relevance"] >= 0.5 and row["language"] == "en" for row in rows)
    assert all(row["text"] and row["markdown"] for row in rows)
    assert f"{len(rows)} pages of" in result.output
    sheet = (tmp_path / "c.jsonl.datasheet.md").read_text()
    assert re.search(r"precision, [^:]*: [01]\.\d\d", sheet)  # it is measured
    assert f"`focuscrawl collect {folder} --out {out} --language en" in sheet

    kept = (folder / FILE).stat().st_mtime_ns
    again = collect(folder, "--out", tmp_path / "c.warc.gz", "--language", "en")
    assert again.exit_code == 0, again.output
    assert (folder / FILE).stat().st_mtime_ns == kept  # texts are read, not taken anew
    archive, demo = open_web(str(tmp_path / "c.warc.gz")), open_web("demo")
    assert sorted(archive.urls()) == sorted(row["url"] for row in rows)
    for row in rows[:3]:
        answers = [web.fetch(row["url"]) for web in (archive, demo)]
        assert answers[0] is not None
        assert answers[1] is not None
        assert answers[0].body == answers[1].body

    for name in ("none.csv", "none.warc.gz", "none"):
        none = collect(folder, "--out", tmp_path / name, "--language", "ja")
        assert none.exit_code == 2
        assert re.search(
            r"^focuscrawl: nothing is written: of \d+ pages with R ≥ 0\.5 none is left; "
            r"left out: \d+ in other languages, or nobody knows$",
            none.output,
            re.MULTILINE,
        ), none.output
    assert not [*tmp_path.glob("none*"), *tmp_path.glob(".none*")]


def test_a_process_that_cannot_start_is_told_with_its_cause_and_nothing_is_kept(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken" / "justext.py"
    broken.parent.mkdir()
    broken.write_text("raise ImportError('lxml.html.clean is elsewhere')\n")
    crawl = shutil.copytree(folder, tmp_path / "copy", ignore=shutil.ignore_patterns(FILE))
    with monkeypatch.context() as patch:
        patch.syspath_prepend(broken.parent)
        result = collect(crawl, "--out", tmp_path / "c.csv")
    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == (
        "focuscrawl: the process of focuscrawl.text.extraction cannot start: ImportError: "
        "lxml.html.clean is elsewhere"
    )
    assert not [*tmp_path.glob("*c.csv*")]
    assert collect(crawl, "--out", tmp_path / "c.csv").exit_code == 0


def test_what_cannot_be_collected_is_one_line(folder: Path, tmp_path: Path) -> None:
    for arguments in (
        (folder, "--out", tmp_path / "c.xlsx"),
        (tmp_path / "none", "--out", tmp_path / "c.csv"),
        (folder, "--out", tmp_path / "c.csv", "--language", "english"),
        (folder, "--out", tmp_path / "c.csv", "--language", "en,xx"),
    ):
        result = collect(*arguments)
        assert result.exit_code == 2
        assert "Traceback" not in result.output
    assert not (folder / FILE).exists()
