"""``python -m studies`` on the synthetic web."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from focuscrawl.cli.lab_commands import lab
from focuscrawl.errors import UserError
from focuscrawl.lab.results import Results
from studies.__main__ import figure, find, harvest, pages, takeover
from studies.figure_data import table_of

ROOT = Path(__file__).resolve().parents[2]
STUDY = """
budget = 40
[[webs]]
name = "demo"
recording = "demo"
labels = "models/demo/examples.csv"
seeds = "models/demo/seeds.csv"
critic = "models/demo"
topics = ["/Sports/Cycling"]
[[strategies]]
strategy = "best-first"
"""


@pytest.mark.long
def test_pages_and_takeover_add_to_the_results_of_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    study, out = tmp_path / "study.toml", tmp_path / "out"
    study.write_text(STUDY)
    options = [str(study), "--out", str(out), "--processes", "1"]
    for command, arguments in (
        (lab, ["run", *options]),
        (pages, options),
        (takeover, options),
        (pages, options),  # nothing is left to do
    ):
        done = CliRunner().invoke(command, arguments)
        assert done.exit_code == 0, done.output
    results = Results.open(out)
    accuracy = table_of(results, "pages", "accuracy")
    assert accuracy is not None
    assert accuracy["average"].between(0.5, 1).all()
    said = CliRunner().invoke(find, [str(out), "--topics"])
    assert said.exit_code == 0
    assert "| a02-07-offsets | offsets add to the words (d_max = 5) | demo |" in said.output
    assert "| a02-14-switch |" in said.output
    drawn = CliRunner().invoke(figure, ["a02-14-switch-paper", *options])
    assert drawn.exit_code == 0, drawn.output
    assert (out / "a02-14-switch-paper.png").read_bytes().startswith(b"\x89PNG")
    wrong = CliRunner().invoke(figure, ["a02-12-recall-paper", *options])
    assert isinstance(wrong.exception, UserError)
    assert "paper's own, recall" in str(wrong.exception)


@pytest.mark.long
def test_harvest_leaves_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    study, out = tmp_path / "study.toml", tmp_path / "out"
    study.write_text(STUDY.replace("budget = 40", "budget = 20"))
    done = CliRunner().invoke(harvest, [str(study), "--out", str(out), "--processes", "1"])
    assert done.exit_code == 0, done.output
    table = (out / "harvest" / "table.md").read_text()
    assert [line.split(" | ")[:2] for line in table.splitlines()[2:4]] == [
        ["| demo", "/Sports/Cycling"],
        ["| demo", "median"],
    ]
    assert "apprentice: judged, ratio" in table
    assert "labelled pages of the topic" in done.output
