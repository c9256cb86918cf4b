"""``focuscrawl lab`` on the synthetic web."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from focuscrawl.apprentice.learners import options_in
from focuscrawl.cli.main import main
from focuscrawl.lab.results import COST, FETCHES

ROOT = Path(__file__).resolve().parents[2]

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
OFFLINE = """
[[strategies]]
label = "offline"
strategy = "apprentice"
trained_on = "best-first"
within = "other order"
[[strategies]]
label = "of other options"
strategy = "apprentice"
trained_on = "best-first"
options = { learner = "nb", groups = ["context"], evidence = "first", counts = true, batch = 99 }
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


def command(*arguments: str | Path) -> list[str | Path]:
    return [Path(sys.executable).with_name("focuscrawl"), "lab", *arguments]


def lab(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["lab", *map(str, arguments)])


def write(tmp_path: Path, text: str) -> tuple[Path, Path]:
    study = tmp_path / "study.toml"
    study.write_text(text)
    return study, tmp_path / "out"


def test_a_study_runs_goes_on_and_names_what_failed(tmp_path: Path) -> None:
    study, out = write(tmp_path, STUDY + WRONG)
    first = command("run", study, "--out", out)
    done = subprocess.run(first, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    failed = [line for line in done.stderr.splitlines() if line.startswith("failed:")]
    assert len(failed) == 2
    assert "demo /Sports/Cycling, draw 0, wrong: " in failed[0]
    assert failed[1].endswith("draw 0, after wrong: the crawl it needs failed: wrong")
    assert "2 of 4 runs failed" in done.stdout
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
    again = lab("run", study, "--out", out)
    assert again.exit_code == 0, again.stderr
    assert kept_at == {path: path.stat().st_mtime_ns for path in kept_at}  # nothing repeated
    assert pd.read_parquet(out / FETCHES).equals(fetches)

    study.write_text(STUDY.replace("budget = 25", "budget = 30"))
    assert lab("run", study, "--out", out).exit_code == 0
    runs = pd.read_parquet(out / "runs.parquet")
    assert (runs["fetches"] == 30).all()  # other terms, other runs


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A study with an apprentice that is trained on the crawl of another, and what was found."""
    folder = tmp_path_factory.mktemp("offline")
    examples = pd.read_csv(ROOT / "models" / "demo" / "examples.csv")
    examples["split"] = ["test" if i % 2 else "train" for i in range(len(examples))]
    examples.to_csv(folder / "labels.csv", index=False)
    text = STUDY.replace("models/demo/examples.csv", str(folder / "labels.csv")) + OFFLINE
    study, out = write(folder, text)
    done = lab("run", study, "--out", out)
    assert done.exit_code == 0, done.stderr
    return text, out


@pytest.mark.long
def test_an_apprentice_is_trained_on_the_crawl_of_another(
    tmp_path: Path, offline: tuple[str, Path]
) -> None:
    text, there = offline
    study, out = write(tmp_path, text)
    shutil.copytree(there, out)
    fetches = pd.read_parquet(out / FETCHES)
    agree = (fetches["judged"] > 0.5) == (fetches["relevance"] > 0.5)
    assert 0.8 < agree.mean() < 1  # a judge apart, who knows the topic, too
    told = fetches[fetches["labelled"].notna()]
    examples = pd.read_csv(there.parent / "labels.csv")
    labels = examples.set_index("url")
    assert len(told)
    assert (labels.loc[told["url"], "split"] == "test").all()
    on = labels.loc[told["url"], "topic"].to_numpy() == "/Sports/Cycling"
    assert (told["labelled"].to_numpy() == on).all()
    loss = pd.read_parquet(out / "runs.parquet").set_index("strategy")["judged_loss"]
    assert loss["best-first"] < loss["other order"]
    urls = fetches.groupby("strategy", observed=True)["url"].agg(set)
    assert urls["offline"] <= urls["other order"]
    first = fetches[fetches["strategy"] == "offline"]
    assert first["score"].nunique() > 2  # it knew something from the start
    assert not list(out.rglob("crawl"))  # nobody waits for one
    assert not list(out.rglob("apprentice"))

    report = lab("report", out, "--csv", "--open", "no")
    assert report.exit_code == 0, report.stderr
    page = (out / "report" / "report.html").read_text()
    assert "offline" in page
    assert len(list((out / "report").glob("demo-*.png"))) == 2 * 3  # by the judge, and the critic
    judges = pd.read_csv(out / "report" / "demo-judges.csv")
    assert [*dict.fromkeys(judges["by"])] == ["labels", "judge", "judge, yes or no", "critic"]
    table = pd.read_csv(out / "report" / "demo-strategies.csv")
    assert table["strategy"].tolist() == [
        *("best-first", "other order", "offline", "of other options"),
    ]

    kept = lab("run", study, "--out", out, "--keep")
    assert kept.exit_code == 0, kept.stderr
    assert len(list(out.rglob("crawl/crawl.db"))) == 4
    trained = sorted(out.rglob("apprentice*/*.npz"))
    options = [options_in(path.read_bytes()) for path in trained]
    assert [(each["learner"], each["counts"]) for each in options] == [
        *(("logistic", False), ("nb", True)),
    ]
    assert pd.read_parquet(out / FETCHES).equals(fetches)


def interrupt(study: Path, out: Path) -> None:
    """Run a study, and press Ctrl-C when its first run is over."""
    first = command("run", study, "--out", out, "--processes", "1")
    with subprocess.Popen(
        first, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
    ) as process:
        while process.poll() is None:
            with suppress(FileNotFoundError):  # a folder that is removed while it is looked at
                if list(out.rglob("run.json")):
                    os.killpg(process.pid, signal.SIGINT)
                    break
            time.sleep(0.005)


@pytest.mark.long
def test_interrupted_a_study_goes_on_and_ends_the_same(
    tmp_path: Path, offline: tuple[str, Path]
) -> None:
    text, whole = offline
    for attempt in range(5):  # it may be through before this process comes to press Ctrl-C
        (tmp_path / str(attempt)).mkdir()
        study, out = write(tmp_path / str(attempt), text)
        interrupt(study, out)
        if not (out / FETCHES).exists():
            break
    assert list(out.rglob("run.json"))
    assert not (out / FETCHES).exists()
    assert lab("run", study, "--out", out).exit_code == 0
    assert (out / FETCHES).read_bytes() == (whole / FETCHES).read_bytes()
    assert (out / "tables.md").read_text() == (whole / "tables.md").read_text()


def test_mistakes_take_one_line_and_nothing_is_run(tmp_path: Path) -> None:
    study, out = write(tmp_path, STUDY.replace("draws", "drafts"))
    empty = tmp_path / "empty"
    for arguments in (
        ("run", tmp_path / "none.toml", "--out", out),
        ("run", study, "--out", out),
        ("report", empty),
    ):
        done = CliRunner().invoke(main, ["lab", *map(str, arguments)])
        assert done.exit_code == 2
        assert done.stderr.count("\n") == 1
    study.write_text(STUDY + '[[strategies]]\nstrategy = "pagerank"\noptions = {damping = 2}\n')
    done = lab("run", study, "--out", out)
    assert done.exit_code == 2
    assert "pagerank: strategy pagerank: damping must be a number" in done.stderr
    study.write_text(STUDY)
    done = lab("run", study, "--out", study / "results")
    assert done.exit_code == 2
    assert f"{study}: it is a file; name another folder with --out" in done.stderr
    study.write_text(STUDY.replace('"/Sports/Cycling"', '"/Sports/Chess"'))
    done = CliRunner().invoke(main, ["lab", "run", str(study), "--out", str(out)])
    assert done.exit_code == 2
    assert "unknown topic /Sports/Chess" in done.stderr
    assert not out.exists()
    assert not empty.exists()
