"""``focuscrawl lab run`` on the synthetic web."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]

STUDY = """
title = "small"
draws = 1
budget = 25
[[webs]]
name = "demo"
recording = "demo"
labels = "labels.csv"
seeds = "models/demo/seeds.csv"
topics = ["/Sports/Cycling"]
critic = "models/demo"
[[strategies]]
strategy = "best-first"
[[strategies]]
label = "other order"
strategy = "random"
[[strategies]]
label = "wrong"
strategy = "random"
options = {speed = 1}
"""


def run(study: Path, out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("focuscrawl"), "lab", "run", study, "--out", out],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_study_runs_goes_on_and_names_what_failed(tmp_path: Path) -> None:
    study, out = tmp_path / "study.toml", tmp_path / "out"
    study.write_text(STUDY)
    done = run(study, out)
    assert done.returncode == 1, done.stderr
    assert "demo /Sports/Cycling, draw 0, wrong" in done.stderr
    assert "no option 'speed'" in done.stderr
    assert "1 of 3 runs failed" in done.stdout
    kept = pd.read_csv(out / "losses.csv")
    assert kept["strategy"].tolist() == ["best-first", "other order"]
    assert (kept["fetches"] == 25).all()
    assert kept["loss"].between(0, 1).all()
    assert kept["loss"].iloc[0] < kept["loss"].iloc[1]

    kept_at = {path: path.stat().st_mtime_ns for path in out.rglob("fetches.parquet")}
    assert len(kept_at) == 2
    study.write_text(STUDY.replace("speed", "depth").rpartition("[[strategies]]")[0])
    again = run(study, out)
    assert again.returncode == 0, again.stderr
    assert kept_at == {path: path.stat().st_mtime_ns for path in kept_at}  # nothing repeated
    assert pd.read_csv(out / "losses.csv").equals(kept)

    study.write_text(study.read_text().replace("budget = 25", "budget = 30"))
    assert run(study, out).returncode == 0
    assert (pd.read_csv(out / "losses.csv")["fetches"] == 30).all()  # other terms, other runs


def test_a_study_that_is_not_there(tmp_path: Path) -> None:
    done = run(tmp_path / "none.toml", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
