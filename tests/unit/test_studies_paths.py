"""``python -m studies paths`` on a small web of departments."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from studies.__main__ import studies

from . import departments

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.long
def test_each_site_is_left_out_and_foraged(tmp_path: Path) -> None:
    web = departments.make(tmp_path)
    options = ("--labels", web.labels, "--column", "kind", "--site-column", "site")
    rest = ("--goal", "professor", "--starts", web.starts, "--budget", 20, "--fails", 3)
    more = ("--against", "breadth-first", "--stop", 0.05, "--out", tmp_path / "results")
    given = ("paths", web.warc, *options, *rest, *more)
    done = CliRunner().invoke(studies, [str(each) for each in given])
    assert done.exit_code == 0, done.output
    with (tmp_path / "results" / "forages.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = {(row["strategy"], row["stop"]): 0 for row in rows}
    for row in rows:
        found[row["strategy"], row["stop"]] += len(row["found_at"].split())
    assert found["paths", "0.0"] == found["paths", "0.05"] == 32
    assert found["breadth-first", "0.0"] < 16
    assert (tmp_path / "results" / "recall-professor.png").stat().st_size > 10_000


def test_too_few_sites_are_one_line(tmp_path: Path) -> None:
    web = departments.make(tmp_path)
    (tmp_path / "sites.txt").write_text(web.doors[3])
    options = ("--labels", web.labels, "--column", "kind", "--site-column", "site")
    rest = ("--goal", "professor", "--starts", tmp_path / "sites.txt", "--out", tmp_path / "o")
    given = ("paths", web.warc, *options, *rest)
    done = CliRunner().invoke(studies, [str(each) for each in given])
    assert done.exit_code == 2
    assert "takes three sites" in done.output
    assert not (tmp_path / "o").exists()
