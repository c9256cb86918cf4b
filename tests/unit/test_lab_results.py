"""Results of a study: collected, opened again, tabulated, drawn."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from focuscrawl.cli.main import main
from focuscrawl.errors import UserError
from focuscrawl.lab.results import FETCHES, RUNS, Results, collect_results, write_fetches
from focuscrawl.lab.study import Contender, Run, Study
from focuscrawl.lab.study_report import (
    PAGE,
    mean_curves,
    reduction_figure,
    report_files,
    topic_figure,
    web_figure,
)
from focuscrawl.lab.study_tables import by_topic, format_markdown, format_text, web_tables
from studies.limits import WITHOUT, compare_limits

BASE, BAD = "base|line", "<b>$x$</b>"  # labels are a user's own
COST = {"seconds": 2.0, "cpu_seconds": 1.0, "megabytes": 100.0}


def pages(relevance: list[float]) -> pd.DataFrame:
    n = len(relevance)
    frame = pd.DataFrame(
        {
            "url": [f"http://a.example/{i}" for i in range(n)],
            "topic": ["/A", *[None] * (n - 1)],
            "referrer": [None, *["http://a.example/0"] * (n - 1)],
            "content_type": "text/html",
            "title": None,
            "duplicate_of": None,
            "error": None,
            "status": np.int16(200),
            "relevance": relevance,
            "depth": np.int32(1),
            "score": [np.nan, *[0.5] * (n - 1)],
            "bytes": np.int64(10),
            "links": np.int32(1),
            "dropped": np.int32(0),
            "fetched_at": pd.Timestamp("2026-01-01", tz="UTC"),
            "host": "a.example",
            "outcome": "page",
        }
    )
    return frame.set_axis(pd.RangeIndex(1, n + 1, name="seq"))


def study() -> Study:
    contenders = (Contender(BASE, "best-first"), Contender(BAD, "random"), Contender("no", "x"))
    return Study("a <study>", 2, 4, 1000, BASE, (), contenders)


def make_runs(folder: Path, given: Study) -> list[Run]:
    runs = []
    for topic in ("/A", "/B"):
        for draw in (0, 1):
            for i, contender in enumerate(given.contenders):
                run = Run(
                    web="w",
                    recording="r",
                    critic="c",
                    topic=topic,
                    draw=draw,
                    budget=4,
                    comparison_budget=4,
                    oracle_loss=0.125,
                    seeds=(),
                    contender=contender,
                    folder=folder / "runs" / topic[1:] / str(draw) / str(i),
                )
                runs.append(run)
                if contender.label == "no":
                    continue  # it failed
                run.folder.mkdir(parents=True)
                found = [1.0, 1.0, 0.5, 0.5, 0.0] if contender.label == BASE else [1.0, 0.0]
                write_fetches(pages(found), run.fetches_path)
                run.record_done(COST)
    return runs


@pytest.fixture
def results(tmp_path: Path) -> Results:
    given = study()
    return collect_results(given, make_runs(tmp_path, given), tmp_path, {"no": "it said <no>"}, {})


def test_what_is_not_fetched_within_the_budget_is_lost(results: Results) -> None:
    runs = results.runs.set_index(["topic", "draw", "strategy"]).to_dict("index")
    assert len(runs) == 8
    base, bad = runs["/A", 1, BASE], runs["/A", 1, BAD]
    assert (base["fetches"], base["loss"], base["harvest"]) == (5, 0.25, 0.75)
    assert (bad["fetches"], bad["loss"], bad["harvest"]) == (2, 0.75, 0.5)
    assert base["folder"] == "runs/A/1/0"
    assert base["megabytes"] == 100


def test_crawls_are_compared_with_those_without_limits(tmp_path: Path) -> None:
    contenders = (Contender(BASE, "random"), Contender(f"{BASE}{WITHOUT}", "random"))
    given = replace(study(), contenders=contenders)
    results = collect_results(given, make_runs(tmp_path, given), tmp_path, {}, {})
    table = compare_limits(results)
    assert table[["topic", "draw"]].to_numpy().tolist() == [
        [topic, draw] for topic in ("/A", "/B") for draw in (0, 1)
    ]
    assert set(table["critic"]) == {0.25}
    assert set(table["+critic"]) == {-0.5}
    assert set(table["parted"]) == {3}  # the other crawl has two fetches


def test_all_fetches_are_in_one_file_a_row_group_a_run(results: Results) -> None:
    with pq.ParquetFile(results.folder / FETCHES) as file:
        assert file.num_row_groups == 8
    everything = results.fetches()
    assert len(everything) == 4 * (5 + 2)
    assert list(everything.columns[:7]) == [
        *("web", "topic", "draw", "strategy", "seq", "url", "host")
    ]
    assert "fetched_at" not in everything
    some = results.fetches(["seq", "class"], topic="/B", strategy=BAD, draw=0)
    assert some["seq"].tolist() == [1, 2]
    assert some["class"].astype(object).where(some["class"].notna(), None).tolist() == ["/A", None]
    with pytest.raises(KeyError, match="sequence"):
        results.fetches(["sequence"])
    with pytest.raises(KeyError, match="run"):
        results.fetches(run=1)
    for run, fetches in results.iter_runs(["relevance"], "w"):
        assert len(fetches) == run.fetches


def test_results_are_the_same_every_time(results: Results) -> None:
    before = (results.folder / FETCHES).read_bytes(), (results.folder / RUNS).read_bytes()
    assert len(Results.open(results.folder).runs) == 8
    for path in results.folder.glob("*.*"):
        path.unlink()
    shutil.rmtree(results.folder / "runs")
    collect_results(study(), make_runs(results.folder, study()), results.folder, {}, {})
    assert before == (
        (results.folder / FETCHES).read_bytes(),
        (results.folder / RUNS).read_bytes(),
    )


def test_no_results(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no results of a study"):
        Results.open(tmp_path)
    with pytest.raises(UserError, match="no run of the study a <study> succeeded"):
        collect_results(study(), [], tmp_path, {}, {})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("study.json", b"["),
        ("study.json", b"[]"),
        ("study.json", b'{"title": "t", "baseline": "b", "strategies": [], "failed": {}}'),
        (
            "study.json",
            b'{"title": "t", "baseline": "b", "strategies": {}, "failed": {}, "beside": "b"}',
        ),
        (RUNS, b"PAR1"),
        (FETCHES, b"PAR1"),
        (FETCHES, "in the middle"),
        (RUNS, None),
        (FETCHES, None),
    ],
)
def test_damaged_results_are_a_line(
    results: Results, name: str, content: bytes | str | None
) -> None:
    path = results.folder / name
    if isinstance(content, str):
        whole = path.read_bytes()
        path.write_bytes(whole[:4] + bytes(len(whole) // 4 - 4) + whole[len(whole) // 4 :])
    elif content is None:
        pd.DataFrame({"other": [1.0]}).to_parquet(path)
    else:
        path.write_bytes(content)
    done = CliRunner().invoke(main, ["lab", "report", str(results.folder)])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"focuscrawl: {path} is damaged: ")
    assert done.stderr.count("\n") == 1
    assert not (results.folder / "report").exists()


def test_tables_for_people(results: Results) -> None:
    strategies, lost, reduced = web_tables(results, "w")
    assert [row[0] for row in strategies.rows] == [BASE, BAD, "(oracle)"]
    assert strategies.rows[1][1:5] == ["0.750", "-200%", "-200%", "-200%"]
    assert strategies.rows[1][6:9] == ["2/2", "+0.500", "0/4"]
    assert strategies.rows[2][1] == "0.125"
    assert lost.rows[0] == ["/A", "4", "0.250 ± 0.000", "0.750 ± 0.000", "0.125"]
    assert reduced.rows[-1] == ["median", "-200%"]
    lines = format_markdown(results).splitlines()
    row = next(line for line in lines if line.startswith("| /A | 4"))
    head = next(line for line in lines if line.startswith("| topic | fetches"))
    assert "base\\|line" in head
    assert head.replace("\\|", "").count("|") == row.count("|")
    assert BAD in format_text(results)


def test_an_oracle_that_has_run_stands_for_itself(results: Results) -> None:
    results.strategies[BAD] = "oracle"
    strategies, lost, _ = web_tables(replace(results, unranked=(BAD,)), "w")
    assert [row[0] for row in strategies.rows] == [BASE, BAD]
    assert [row[5] for row in strategies.rows] == ["1.0", "-"]  # it is not in the race
    assert "(oracle)" not in lost.head


def test_curves_end_at_the_loss_of_the_tables(results: Results) -> None:
    curves = mean_curves(results, "w")
    table = results.runs.groupby(["topic", "strategy"], observed=True)["loss"].mean()
    for topic, found in curves.items():
        for label, curve in found.items():
            assert curve[-1] == pytest.approx(table[topic, label])
            assert len(curve) == 100
    np.testing.assert_allclose(curves["/A"][BASE][[24, 49, 74]], [0, 0, 1 / 6])
    figure = topic_figure(curves["/A"], 4, list(results.strategies))
    (plot,) = figure.axes
    assert [line.get_linestyle() for line in plot.get_lines()] == ["-", "--"]
    assert len({line.get_marker() for line in plot.get_lines()}) == 2
    (plot,) = web_figure(curves, list(results.strategies)).axes
    assert plot.get_ylabel() == "loss rate, median over topics"
    topics = by_topic(results.runs, BASE)
    (plot,) = reduction_figure(topics, list(results.strategies), BASE).axes
    assert np.asarray(plot.get_lines()[0].get_xdata()).tolist() == [-1, -1]  # at the edge


def test_the_report_needs_nothing_else_and_shows_no_markup_of_others(results: Results) -> None:
    files = report_files(results, csv=True)
    page = files[PAGE].decode()
    assert BAD not in page
    assert "&lt;b&gt;$x$&lt;/b&gt;" in page
    assert "it said &lt;no&gt;" in page
    assert not re.search(r'(src|href)="(?!data:)', page)
    pictures = [name for name in files if name.endswith(".png")]
    assert len(pictures) == 2 + 2
    assert all(files[name].startswith(b"\x89PNG") for name in pictures)
    assert page.count("<img") == len(pictures)
    assert sorted(name for name in files if name.endswith(".csv")) == [
        "w-losses.csv",
        "w-reductions.csv",
        "w-strategies.csv",
    ]


def test_results_of_a_stranger_keep_nobody_waiting_and_lead_nowhere(
    results: Results, tmp_path: Path
) -> None:
    theirs, outside = tmp_path / "theirs", tmp_path / "outside"
    theirs.mkdir()
    outside.mkdir()
    for name in ("study.json", RUNS, FETCHES):
        shutil.copy(results.folder / name, theirs)
    (theirs / "report").symlink_to(outside)
    done = CliRunner().invoke(main, ["lab", "report", str(theirs)])
    assert done.exit_code == 2
    assert "report is a link to" in done.output
    assert not [*outside.iterdir()]
    for name in ("study.json", RUNS, FETCHES):
        (theirs / name).rename(theirs / "kept")
        os.mkfifo(theirs / name)
        with pytest.raises(UserError, match=f"{name} is not a regular file"):
            Results.open(theirs)
        (theirs / "kept").rename(theirs / name)
