"""Rounds on a standalone cluster, whose executors or driver are killed at random moments."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.spark import (
    begin,
    cluster,
    crawl,
    executors,
    kill_group,
    rounds_done,
    wait_for,
    why_not,
    write_plan,
)

from focuscrawl.rounds.buckets import BucketUrls
from focuscrawl.rounds.tables import Tables

from .lasting import LONG

pytestmark = [
    pytest.mark.skipif(not LONG, reason="make endurance"),
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
]
BUDGET, ROUND, BUCKETS = 3000, 150, 4
KILLED_EXECUTORS, KILLED_DRIVERS = 10, 5


def told_of(root: Path) -> dict[str, list[str]]:
    """Return all that the tables say in the end, but for the times of fetches: rows as texts."""
    tables, last = Tables(str(root)), 10**5 - 1
    told: dict[str, list[dict[str, Any]]] = {"pages": [], "links": [], "urls": []}
    for bucket in range(BUCKETS):
        for name in tables.bucket_tables("pages", bucket, last):
            told["pages"] += tables.read(name).drop_columns(["fetched_at"]).to_pylist()
        for name in tables.bucket_tables("evidence", bucket, last):
            told["links"] += tables.read(name).to_pylist()
        urls = BucketUrls(tables, bucket, last)
        told["urls"] += urls.rows(urls.positions(urls.ids)).to_pylist()
    return {name: [*map(repr, rows)] for name, rows in told.items()}


def assert_whole(root: Path, undisturbed: Path) -> None:
    told, expected = told_of(root), told_of(undisturbed)
    assert len(told["pages"]) == len(set(told["pages"])) == BUDGET
    for name in expected:
        assert told[name] == expected[name], name


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    return write_plan(folder / "plan.toml", budget=BUDGET, round=ROUND, buckets=BUCKETS)


@pytest.fixture(scope="module")
def undisturbed(plan: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("undisturbed") / "tables"
    crawl(plan, root)
    return root


def test_executors_that_are_killed(
    master: str, plan: Path, undisturbed: Path, tmp_path: Path
) -> None:
    rng, root, killed = random.Random(0), tmp_path / "tables", 0
    process = begin(plan, root, master=master)
    for n in range(1, 1 + KILLED_EXECUTORS):
        if not wait_for(root, 2 * n, process):
            break
        time.sleep(rng.uniform(0.0, 2.0))
        alive = executors(master)
        if alive:
            os.kill(rng.choice(alive), signal.SIGKILL)
            killed += 1
    said = process.communicate()[0]
    assert process.returncode == 0, said
    print(f"{killed} executors were killed in {rounds_done(root)} rounds")
    assert killed == KILLED_EXECUTORS
    assert_whole(root, undisturbed)


def test_drivers_that_are_killed(
    master: str, plan: Path, undisturbed: Path, tmp_path: Path
) -> None:
    rng, root, at = random.Random(1), tmp_path / "tables", []
    for n in range(1, 1 + KILLED_DRIVERS):
        process = begin(plan, root, master=master)
        assert wait_for(root, 4 * n, process)
        time.sleep(rng.uniform(0.0, 3.0))
        at.append(rounds_done(root))
        kill_group(process)
    crawl(plan, root, master=master)
    print(f"the driver was killed after {', '.join(map(str, at))} of {rounds_done(root)} rounds")
    assert_whole(root, undisturbed)
