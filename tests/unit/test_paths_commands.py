"""``focuscrawl paths``: forages, paths of a crawl, sites left out, what a person gets wrong."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from focuscrawl.paths.training_paths import read_paths

from . import departments
from .forages import forage, rows_of, run_paths, train_model

if TYPE_CHECKING:
    from pathlib import Path

    from .departments import Departments


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Departments:
    return departments.make(tmp_path_factory.mktemp("departments"))


@pytest.fixture(scope="module")
def model(web: Departments) -> Path:
    return train_model(web)


def test_the_command_forages(web: Departments, model: Path, tmp_path: Path) -> None:
    (tmp_path / "sites.txt").write_text(web.doors[3])
    # a real process of Scrapy
    done = run_paths(
        "forage",
        model,
        tmp_path / "sites.txt",
        "--web",
        web.warc,
        "--budget",
        12,
        "--out",
        tmp_path / "f",
    )
    assert f"8 goal pages, with their paths in {tmp_path / 'f' / 'goals.csv'}" in done.output
    with (tmp_path / "f" / "goals.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["url"] for row in rows} == web.professors[web.doors[3]]
    assert all(row["path"].split(" ")[-1] == row["url"] for row in rows)
    ((options,),) = rows_of(tmp_path / "f", "SELECT value FROM meta WHERE key = 'options'")
    assert json.loads(options) == {"adapt": True, "per_site": 0, "stop": 0.03, "threshold": 0.0}


def test_paths_are_taken_out_of_a_crawl(web: Departments, model: Path, tmp_path: Path) -> None:
    forage(web, model, tmp_path / "c", web.doors[3], budget=12)
    run_paths(
        *("extract", tmp_path / "c", "--labels", web.labels, "--column", "kind"),
        *("--goal", "professor", "--out", tmp_path / "p.jsonl"),
    )
    ends = {path.pages[-1] for path in read_paths(tmp_path / "p.jsonl") if path.succeeds}
    assert ends >= web.professors[web.doors[3]]  # the first fetches are those and the way


def test_what_a_person_can_get_wrong(web: Departments, model: Path, tmp_path: Path) -> None:
    sites = tmp_path / "sites.txt"
    sites.write_text(web.doors[3])
    labels = ("--labels", web.labels, "--column", "kind", "--goal", "professor")
    out = ("--out", tmp_path / "o")
    for arguments, said in (
        (("extract", web.warc, *labels, *out), "Name their front doors with --starts"),
        (
            ("extract", web.warc, *labels[:2], "--goal", "x", "--starts", sites, *out),
            "it needs the columns url,topic",
        ),
        (
            ("extract", web.warc, *labels[:-1], "dean", "--starts", sites, *out),
            "no page labelled 'dean'",
        ),
        (("train", sites, "--web", web.warc, *out), "line 1: no path"),
        (("train", sites, "--web", web.warc, "--out", model), "is there already"),
        (("forage", tmp_path, sites, *out), "focuscrawl paths train"),
        (("forage", model, tmp_path / "none.txt", *out), "neither a file nor"),
        (("record", "ftp://a", *out), "no http(s) URL"),
        (("record", "http://nowhere.example/", "--web", web.warc, *out), "is not in"),
    ):
        done = run_paths(*arguments, code=2)
        assert said in done.output
        assert len(done.output.strip().splitlines()) == 1
        assert not (tmp_path / "o").exists()


@pytest.mark.long
def test_scores_as_printed_do_not_adapt(
    web: Departments, model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sites.txt").write_text(web.doors[3])
    command = ("forage", model, tmp_path / "sites.txt", "--web", web.warc, "--budget", 3)
    run_paths(*command, "--printed-scores", "--adapt", "--out", tmp_path / "both", code=2)
    assert capfd.readouterr().err.strip().endswith("leave out one of the two")
    assert not (tmp_path / "both").exists()
    for given in ("--printed-scores", "--no-adapt"):
        run_paths(*command, given, "--out", tmp_path / given[2:])
        ((options,),) = rows_of(
            tmp_path / given[2:], "SELECT value FROM meta WHERE key = 'options'"
        )
        assert "adapt" not in json.loads(options)
