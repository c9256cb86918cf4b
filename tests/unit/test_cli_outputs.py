"""What commands write never takes the place of what they read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from scrapy.settings import Settings

from focuscrawl.cli.common_options import ProgressBar
from focuscrawl.cli.main import OneLineErrorGroup, main
from focuscrawl.errors import UserError
from focuscrawl.exporters import check_feeds
from focuscrawl.store import CrawlStore

DEMO = Path(__file__).parents[2] / "models" / "demo"


def refused(*arguments: object) -> str:
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == 2, done.output
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_progress_is_printed_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar("Judging", "URLs", interval=0.0)
    bar.start(3)
    bar.advance(2)
    bar.advance()
    bar.close()
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["Judging: 3 URLs", "Judging: 2 of 3 URLs", "Judging: 3 of 3 URLs"]


def test_ctrl_c_ends_a_command_without_a_message() -> None:
    @click.command(cls=OneLineErrorGroup, invoke_without_command=True)
    def interrupted() -> None:
        raise KeyboardInterrupt

    done = CliRunner().invoke(interrupted)
    assert (done.exit_code, done.output) == (130, "")


def test_inputs_stay_as_they_are(tmp_path: Path) -> None:
    labels, model, store = tmp_path / "labels.csv", tmp_path / "m", tmp_path / "c" / "crawl.db"
    shutil.copy(DEMO / "examples.csv", labels)
    shutil.copytree(DEMO, model)
    store.parent.mkdir()
    CrawlStore.create(store, {}).close()
    kept = {path: path.read_bytes() for path in (labels, model / "manifest.json", store)}
    check = ("critic", "check", model, "--labels", labels, "--web", "demo", "--csv")
    assert "an input file" in refused(*check, labels)
    assert "belongs to a crawl or a model" in refused(*check, store)
    assert "belongs to a crawl" in refused("report", store.parent, "--csv", store)
    assert "belongs to a crawl" in refused("distill", store.parent, "--html", store)
    manifest = model / "manifest.json"
    assert "or a model" in refused("critic", "quality", model, "--topic", "/", "--out", manifest)
    recording = shutil.copy(labels, tmp_path / "pages.csv")
    assert "an input file" in refused(
        "collect", store.parent, "--web", recording, "--out", recording
    )
    assert kept == {path: path.read_bytes() for path in kept}


def test_feeds_that_cannot_be_written_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "crawl.db"
    CrawlStore.create(store, {}).close()
    for path, said in (
        (tmp_path, "is a folder"),
        (store / "pages.jsonl", "is a file"),
        (store, "is the database of a crawl"),
    ):
        for uri in (str(path), f"file://{path}"):
            with pytest.raises(UserError, match=said):
                check_feeds(Settings({"FEEDS": {uri: {"format": "jsonlines"}}}))
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)  # root may write
    with pytest.raises(UserError, match="cannot be written: name another file"):
        check_feeds(Settings({"FEEDS": {str(tmp_path / "new" / "p.csv"): {"format": "csv"}}}))
    monkeypatch.undo()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_feeds(Settings({"FEEDS": {str(pipe): {"format": "csv"}}}))  # waits for nobody
    check_feeds(Settings({"FEEDS": {str(tmp_path / "new" / "p.csv"): {"format": "csv"}}}))
