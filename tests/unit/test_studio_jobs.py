"""Commands begun from the studio are found again, whoever looks."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pytest

from focuscrawl.errors import UserError
from focuscrawl.studio.access import token_of
from focuscrawl.studio.jobs import Job, Jobs, JobState

if TYPE_CHECKING:
    from pathlib import Path

LONG = 300.0  # seconds after which a process hangs


def ended(jobs: Jobs, name: str) -> Job:
    """Wait for the end of a job."""
    since = time.monotonic()
    while (job := jobs.job(name)).state is JobState.RUNNING:
        assert time.monotonic() - since < LONG
        time.sleep(0.05)
    return job


def test_a_job_is_found_with_what_it_said_and_how_it_ended(tmp_path: Path) -> None:
    training = ["topic", "train", "missing.toml", "--out", "x"]
    begun = Jobs(tmp_path).begin("train", "cycling", training)
    assert begun.state is JobState.RUNNING
    jobs = Jobs(tmp_path)  # another studio
    failed = ended(jobs, begun.id)
    assert (failed.state, failed.exit_code) == (JobState.FAILED, 2)
    assert "missing.toml" in failed.said
    done = ended(jobs, jobs.begin("look", "cycling", ["--version"]).id)
    assert (done.state, done.exit_code) == (JobState.DONE, 0)
    assert [job.id for job in jobs.all()] == [done.id, begun.id]
    assert jobs.all(kind="train", subject="cycling") == [failed]


def test_a_running_job_is_ended(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    arguments = ["web=demo", "topic=/Sports/Cycling", "budget=100000", "crawl_dir=cycling"]
    given = [part for each in arguments for part in ("-a", each)]
    job = jobs.begin("crawl", "cycling", ["crawl", *given])
    while not (tmp_path / "cycling" / "crawl.db").exists():
        assert jobs.job(job.id).state is JobState.RUNNING
        time.sleep(0.05)
    jobs.end(job.id)
    assert ended(jobs, job.id).exit_code is not None


def test_a_job_whose_process_is_gone_has_failed(tmp_path: Path) -> None:
    folder = tmp_path / ".studio" / "jobs" / "1"
    folder.mkdir(parents=True)
    order = {"kind": "crawl", "subject": "x", "arguments": [], "begun": "2026-01-01T00:00:00"}
    (folder / "order.json").write_text(json.dumps(order))
    job = Jobs(tmp_path).job("1")
    assert (job.state, job.exit_code) == (JobState.FAILED, None)


@pytest.mark.parametrize("order", ["", "[]", "{}", '{"arguments": 1}'])
def test_what_is_no_job_is_not_listed(tmp_path: Path, order: str) -> None:
    folder = tmp_path / ".studio" / "jobs" / "1"
    folder.mkdir(parents=True)
    (folder / "order.json").write_text(order)
    assert Jobs(tmp_path).all() == []
    for name in ("1", "..", "../jobs/1", ""):
        with pytest.raises(UserError):
            Jobs(tmp_path).job(name)


def test_an_outcome_that_is_no_number_is_no_job(tmp_path: Path) -> None:
    """JSON as Python reads it has an infinity, which is no integer: it is not listed either."""
    folder = tmp_path / ".studio" / "jobs" / "1"
    folder.mkdir(parents=True)
    order = {"kind": "crawl", "subject": "x", "arguments": [], "begun": "2026-01-01T00:00:00"}
    (folder / "order.json").write_text(json.dumps(order))
    for code in ("Infinity", "-1e999", "NaN", "[]"):
        (folder / "outcome.json").write_text(f'{{"exit_code": {code}}}')
        assert Jobs(tmp_path).all() == []


def test_the_token_is_the_folders_own_and_nobody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    token = token_of(tmp_path)
    assert token_of(tmp_path) == token != token_of(tmp_path / "other")
    kept = [path for path in (tmp_path / "state").rglob("*") if token in _text(path)]
    assert len(kept) == 1
    assert kept[0].stat().st_mode & 0o077 == 0
    os.chmod(kept[0], 0o644)  # noqa: PTH101 - others may have read it
    assert token_of(tmp_path) != token


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""
