"""Commands started from the studio are found again by every studio."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from focuscrawl.errors import UserError
from focuscrawl.report.outcomes import stop_reason
from focuscrawl.report.status import open_store
from focuscrawl.studio.jobs import Job, Jobs, JobState
from focuscrawl.studio.listing import list_crawls
from focuscrawl.studio.served_folder import StudioFolder

from .studio_folders import write_job

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
    begun = Jobs(tmp_path).start("train", "cycling", training)
    assert begun.state is JobState.RUNNING
    jobs = Jobs(tmp_path)  # another studio
    assert jobs.running("train", "cycling") == begun
    assert jobs.running("train", "other") is None
    failed = ended(jobs, begun.id)
    assert (failed.state, failed.exit_code) == (JobState.FAILED, 2)
    assert "missing.toml" in failed.output
    done = ended(jobs, jobs.start("look", "cycling", ["--version"]).id)
    assert (done.state, done.exit_code) == (JobState.DONE, 0)
    assert [job.id for job in jobs.all()] == [done.id, begun.id]
    assert jobs.all(kind="train", subject="cycling") == [failed]


def test_a_running_job_is_ended(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    arguments = ["web=demo", "topic=/Sports/Cycling", "budget=100000", "crawl_dir=cycling"]
    given = [part for each in arguments for part in ("-a", each)]
    job = jobs.start("crawl", "cycling", ["crawl", *given])
    while not any(each.get("fetched") for each in list_crawls(StudioFolder(tmp_path))):
        assert jobs.job(job.id).state is JobState.RUNNING
        time.sleep(0.05)
    jobs.stop(job.id)
    assert ended(jobs, job.id).exit_code is not None
    with closing(open_store(tmp_path / "cycling")) as store:
        assert stop_reason(store) == "interrupted"


def test_a_job_whose_process_is_gone_has_failed(tmp_path: Path) -> None:
    write_job(tmp_path)
    job = Jobs(tmp_path).job("1")
    assert (job.state, job.exit_code) == (JobState.FAILED, None)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        *(("order.json", text) for text in ("", "[]", "{}", '{"arguments": 1}')),
        # JSON as Python reads it has an infinity, which is no integer
        *(
            ("outcome.json", f'{{"exit_code": {code}}}')
            for code in ("Infinity", "-1e999", "NaN", "[]")
        ),
    ],
)
def test_what_is_no_job_is_not_listed(tmp_path: Path, file: str, text: str) -> None:
    (write_job(tmp_path) / file).write_text(text)
    assert Jobs(tmp_path).all() == []
    for name in ("1", "..", "../jobs/1", ""):
        with pytest.raises(UserError):
            Jobs(tmp_path).job(name)
