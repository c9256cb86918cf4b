"""``focuscrawl lab`` on the synthetic web."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from focuscrawl.lab.results import COST, FETCHES

from .typed import focuscrawl, mistaken

STUDY = """
title = "small"
draws = 1
budget = 25
[[webs]]
name = "demo"
recording = "demo"
labels = "models/demo/examples.csv"
seeds = "models/demo/seeds.csv"
topics = ["/Sports/Cycling"]
critic = "models/demo"
[[strategies]]
strategy = "best-first"
[[strategies]]
label = "other order"
strategy = "random"
"""
WRONG = """
[[strategies]]
label = "wrong"
strategy = "paths"  # needs a critic of another kind
[[strategies]]
label = "after wrong"
strategy = "apprentice"
trained_on = "wrong"
"""


def write(tmp_path: Path, text: str) -> tuple[Path, Path]:
    study = tmp_path / "study.toml"
    study.write_text(text)
    return study, tmp_path / "out"


def test_a_study_runs_goes_on_and_names_what_failed(tmp_path: Path) -> None:
    study, out = write(tmp_path, STUDY + WRONG)
    done = focuscrawl("lab", "run", study, "--out", out, code=1)
    failed = [line for line in done.stderr.splitlines() if line.startswith("failed:")]
    assert len(failed) == 2
    assert "demo /Sports/Cycling, draw 0, wrong: " in failed[0]
    assert failed[1].endswith("draw 0, after wrong: skipped, since the crawl of 'wrong' failed")
    assert "2 of 4 crawls failed" in done.stdout
    runs = pd.read_parquet(out / "runs.parquet")
    assert runs["strategy"].tolist() == ["best-first", "other order"]
    assert (runs["fetches"] == 25).all()
    assert runs["loss"].between(0, 1).all()
    assert runs["loss"].iloc[0] < runs["loss"].iloc[1]
    assert (runs[list(COST)] > 0).all(axis=None)
    fetches = pd.read_parquet(out / FETCHES)
    lost = 1 - fetches.groupby("strategy", observed=True)["relevance"].mean()
    assert lost["best-first"] == runs["loss"].iloc[0]

    kept_at = {path: path.stat().st_mtime_ns for path in out.rglob("runs/**/fetches.parquet")}
    assert len(kept_at) == 2
    study.write_text(STUDY)
    focuscrawl("lab", "run", study, "--out", out)
    assert kept_at == {path: path.stat().st_mtime_ns for path in kept_at}  # nothing repeated
    assert pd.read_parquet(out / FETCHES).equals(fetches)

    study.write_text(STUDY.replace("budget = 25", "budget = 30"))
    focuscrawl("lab", "run", study, "--out", out)
    runs = pd.read_parquet(out / "runs.parquet")
    assert (runs["fetches"] == 30).all()  # other terms, other runs

    focuscrawl("lab", "report", out, "--csv", "--open", "no")
    assert "other order" in (out / "report" / "report.html").read_text()
    assert [*(out / "report").glob("demo-*.png")]
    table = pd.read_csv(out / "report" / "demo-strategies.csv")
    assert table["strategy"].tolist() == ["best-first", "other order"]


def test_mistakes_take_one_line_and_nothing_is_run(tmp_path: Path) -> None:
    study, out = write(tmp_path, STUDY.replace("draws", "drafts"))
    empty = tmp_path / "empty"
    for arguments in (
        ("run", tmp_path / "none.toml", "--out", out),
        ("run", study, "--out", out),
        ("report", empty),
    ):
        mistaken("lab", *arguments)
    pagerank = '[[strategies]]\nstrategy = "pagerank"\noptions = {damping = 2}\n'
    for text, where, said in (
        (STUDY + pagerank, out, "pagerank: strategy pagerank: damping must be a number"),
        (
            STUDY,
            study / "results",
            f"{study} is a file, not a folder: name another folder with --out",
        ),
        (STUDY.replace("Cycling", "Chess"), out, "unknown topic /Sports/Chess"),
    ):
        study.write_text(text)
        assert said in mistaken("lab", "run", study, "--out", where)
    assert not out.exists()
    assert not empty.exists()
