"""Starts commands for the studio in processes that continue when the studio stops.

A job's process is ``python -m focuscrawl.studio.jobs FOLDER ARGUMENTS``. The process runs the
command ``focuscrawl ARGUMENTS``, and writes output and exit code to FOLDER.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

from filelock import FileLock

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import (
    is_locked,
    open_nofollow,
    reporting_write_errors,
    safe_join,
    write_atomically,
)
from focuscrawl.foundation.processes import start_python

#: environment of processes in the served folder: Scrapy must not read a ``scrapy.cfg`` of it
PROCESS_ENVIRONMENT = {"SCRAPY_SETTINGS_MODULE": "focuscrawl.settings"}
_FOLDER = ".studio/jobs"
_JOB_FILE = "order.json"  # ``kind``, ``subject``, ``arguments``, ``begun``
_PROCESS_FILE = "process.json"  # ``pid`` of the job's process
_LOG_FILE = "output.log"
_OUTCOME_FILE = "outcome.json"  # ``exit_code``; exists when the command has ended
_LOCK_FILE = "lock"  # held by the job's process; the kernel releases the lock if it is killed
_MAX_FILE = 1 << 20  # bytes of a file
_COMMAND = re.compile(r"^focuscrawl[a-z ]*: ")
_MAX_OUTPUT = 4096  # bytes shown, from the end of the log
_MAX_ENDED = 200  # ended jobs; older jobs are deleted
# errors of reading files from somebody else; int() of an infinity raises OverflowError
_BAD_JOB_ERRORS = (
    *(OSError, UserError, ValueError, LookupError),
    *(TypeError, OverflowError, RecursionError),
)


class JobState(StrEnum):
    """State of a job (a command that the studio has started).

    A job that was killed, or has an exit code other than 0, has failed.
    """

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Job:
    """A command that the studio has started, running or ended."""

    id: str  # in URLs; sorts by the start of the jobs
    kind: str  # one word, such as crawl, train, fetch, collect
    subject: str  # path of the job's crawl or topic below the served folder
    arguments: list[str]  # command line after "focuscrawl"
    started_at: str  # ISO 8601, UTC
    state: JobState
    exit_code: int | None  # None while the command is running, and if it was killed
    output: str  # end of the command's output

    @property
    def message(self) -> str:
        """Last line of the output; if the line is an error, without the name of the command."""
        return _COMMAND.sub("", self.output.rpartition("\n")[2])

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes of the job under the names of the JSON API."""
        found = asdict(self)
        found["begun"], found["said"] = found.pop("started_at"), found.pop("output")
        return found


class Jobs:
    """Starts jobs (commands) in the folder `root`, and finds earlier jobs.

    Each job has a folder in ``.studio/jobs`` with arguments, output and exit code.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def _jobs(self) -> Path:
        return safe_join(self._root, _FOLDER)

    def start(self, kind: str, subject: str, arguments: Sequence[str]) -> Job:
        """Start a job, given its attributes (see `Job`), and return the job."""
        _refuse_links(self._root, arguments)
        now = datetime.now(UTC)
        name = f"{now:%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}"
        folder = self._jobs / name
        order = {"kind": kind, "subject": subject, "arguments": list(arguments)}
        order |= {"begun": now.isoformat(timespec="seconds")}
        with reporting_write_errors(folder):
            folder.mkdir(parents=True)
            write_atomically(folder / _JOB_FILE, json.dumps(order))
        # not read from the job's file, which somebody else may have written
        command = ["-m", "focuscrawl.studio.jobs", str(folder), *arguments]
        process = start_python(
            command,
            variables=PROCESS_ENVIRONMENT,
            cwd=self._root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in the studio's terminal must not stop jobs
        )
        assert process.stdout is not None
        with process.stdout as pipe:
            pipe.read(1)  # sent when the process holds the lock, and can be stopped
        threading.Thread(target=process.wait, daemon=True).start()  # prevents a zombie
        self._remove(self._names()[:-_MAX_ENDED])
        return self.job(name)

    def job(self, name: str) -> Job:
        """Return the job with the given id; raise `UserError` if the job does not exist."""
        if "/" not in name and name in self._names():
            found = self._read_job(name)
            if found is not None:
                return found
        raise UserError(f"no job {name!r:.100} exists: reload the list of jobs")

    def latest(self, n: int) -> list[Job]:
        """Return the latest `n` jobs, latest first."""
        found = (self._read_job(name) for name in reversed(self._names()))
        return [*islice((job for job in found if job is not None), n)]

    def all(self, *, kind: str | None = None, subject: str | None = None) -> list[Job]:
        """Return the jobs of one kind, for one subject such as a crawl, latest first."""
        found = [self._read_job(name) for name in reversed(self._names())]
        return [
            job
            for job in found
            if job is not None and kind in (None, job.kind) and subject in (None, job.subject)
        ]

    def running(self, kind: str, subject: str) -> Job | None:
        """Return the running job of one kind for one subject such as a crawl, or None."""
        found = self.all(kind=kind, subject=subject)
        return next((job for job in found if job.state is JobState.RUNNING), None)

    def stop(self, name: str) -> Job:
        """Interrupt a running job as Ctrl-C does, and return the job."""
        job = self.job(name)
        if job.state is JobState.RUNNING:
            process = self._read_json(name, _PROCESS_FILE)
            with suppress(ProcessLookupError, KeyError, TypeError, ValueError, PermissionError):
                os.kill(int(process["pid"]), signal.SIGINT)
        return job

    def _names(self) -> list[str]:
        try:
            with os.scandir(self._jobs) as found:
                return sorted(each.name for each in found if each.is_dir(follow_symlinks=False))
        except (OSError, UserError):
            return []

    def _read_job(self, name: str) -> Job | None:
        """Read a job from its files; None if they are damaged."""
        try:
            # read before the outcome, because the job may end in between
            running = is_locked(self._jobs / name / _LOCK_FILE)
            order = self._read_json(name, _JOB_FILE)
            code = self._read_json(name, _OUTCOME_FILE).get("exit_code")
            if code is not None:
                code = int(code)
            state = JobState.DONE if code == 0 else JobState.FAILED
            return Job(
                id=name,
                kind=str(order["kind"]),
                subject=str(order["subject"]),
                arguments=list(map(str, order["arguments"])),
                started_at=str(order["begun"]),
                state=JobState.RUNNING if running and code is None else state,
                exit_code=code,
                output=self._read_output(name),
            )
        except _BAD_JOB_ERRORS:
            return None

    def _read_json(self, name: str, file: str) -> dict[str, Any]:
        try:
            with open(self._jobs / name / file, "rb", opener=open_nofollow) as opened:
                found = json.loads(opened.read(_MAX_FILE))
        except FileNotFoundError:
            return {}
        if not isinstance(found, dict):
            raise TypeError(file)
        return found

    def _read_output(self, name: str) -> str:
        try:
            with open(self._jobs / name / _LOG_FILE, "rb", opener=open_nofollow) as opened:
                size = os.fstat(opened.fileno()).st_size
                opened.seek(max(0, size - _MAX_OUTPUT))
                end = opened.read(_MAX_OUTPUT).decode(errors="replace")
        except FileNotFoundError:
            return ""
        # keep only the last state of a progress bar
        lines = (line.rpartition("\r")[2] for line in end.replace("\r\n", "\n").split("\n"))
        return "\n".join(line.rstrip() for line in lines).strip()

    def remove(self, subject: str) -> None:
        """Delete the records of the ended jobs for one subject, such as a deleted topic."""
        self._remove(job.id for job in self.all(subject=subject))

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            folder = safe_join(self._jobs, name)
            with suppress(UserError):  # a lock that is a link: this may not be a job's folder
                if not is_locked(folder / _LOCK_FILE):
                    shutil.rmtree(folder, ignore_errors=True)  # does not follow links


def _refuse_links(root: Path, arguments: Sequence[str]) -> None:
    """Raise `UserError` if an argument is a path through a link; paths in `root` start with ./."""
    for each in arguments:
        path = each if each.startswith("./") else each.partition("=")[2]
        if path.startswith("./"):
            safe_join(root, path)


def main() -> None:
    """Run the command ``focuscrawl ARGUMENTS`` for the job in the folder FOLDER."""
    folder, arguments = Path(sys.argv[1]), sys.argv[2:]
    with FileLock(folder / _LOCK_FILE, fallback_to_soft=False):
        write_atomically(folder / _PROCESS_FILE, json.dumps({"pid": os.getpid()}))
        command = ["-m", "focuscrawl", *arguments]
        with open(folder / _LOG_FILE, "wb", opener=open_nofollow) as log:
            process = start_python(command, stdout=log, stderr=log, start_new_session=True)

            def forward_signal(signum: int, _: object) -> None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signum)  # as a terminal does: the crawls of a command

            for each in (signal.SIGINT, signal.SIGTERM):
                signal.signal(each, forward_signal)
            os.write(1, b"!")
            os.close(1)
            code = process.wait()
        write_atomically(folder / _OUTCOME_FILE, json.dumps({"exit_code": code}))


if __name__ == "__main__":
    main()
