"""Rounds by Apache Spark on this machine: what processes crawl, and what is said if it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from focuscrawl.rounds.folders import write_crawl_folder

from .ports import free_port
from .running import Kept
from .spark import crawl, refused, why_not, write_plan

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def test_spark_crawls_what_processes_crawl(tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "plan.toml", budget=40, round=20, buckets=2)
    said = crawl(plan, tmp_path / "spark", master="local[2]")
    assert all(line.startswith("round ") for line in said.splitlines()[:-1])
    assert len(said.splitlines()) >= 4
    assert said.splitlines()[-1] == "the budget of 40 fetches is spent"
    crawl(plan, tmp_path / "processes")
    for name in ("spark", "processes"):
        write_crawl_folder(str(tmp_path / name), tmp_path / f"{name}-crawl")
    spark, processes = (Kept(tmp_path / f"{name}-crawl") for name in ("spark", "processes"))
    assert spark.order == processes.order
    links = "SELECT source, target, score FROM links ORDER BY source, target"
    assert spark.query(links) == processes.query(links)


def test_a_master_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    master = f"spark://127.0.0.1:{free_port()}"
    plan = write_plan(tmp_path / "plan.toml", budget=60)
    line = refused(plan, tmp_path / "tables", master)
    assert line.startswith(f"focuscrawl: the Spark master {master} does not answer: ")
    assert not (tmp_path / "tables").exists()


def test_without_java_it_is_one_line(tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "plan.toml", budget=60)
    nowhere = {"JAVA_HOME": "/nowhere", "PATH": str(tmp_path)}
    line = refused(plan, tmp_path / "tables", "local[2]", **nowhere)
    assert line.startswith("focuscrawl: --master local[2] needs a Java runtime, which is missing")
    assert "in JAVA_HOME=/nowhere: " in line
    assert not (tmp_path / "tables").exists()


@pytest.mark.long
def test_what_a_task_finds_damaged_is_one_line(tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "plan.toml", budget=20, round=10, buckets=2)
    root = tmp_path / "tables"
    crawl(plan, root, master="processes[1]")
    for table in root.glob("urls/*/*"):
        table.write_bytes(b"PAR1 no more")
    write_plan(plan, budget=40, round=10, buckets=2)
    assert "cannot be read" in refused(plan, root, "local[2]")
