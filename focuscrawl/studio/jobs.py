"""Commands that the studio starts, as processes that continue when the studio stops.

``python -m focuscrawl.studio.jobs FOLDER ARGUMENTS`` is such a process: it runs the command, and
records how it ended.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import is_held, open_plain, plain_below, write_whole
from focuscrawl.foundation.processes import start_python

if TYPE_CHECKING:
    from collections.abc import Sequence

#: of processes that work in the folder: Scrapy looks for no ``scrapy.cfg`` there, nor above it
PROCESS_ENVIRONMENT = {"SCRAPY_SETTINGS_MODULE": "focuscrawl.settings"}
_FOLDER = ".studio/jobs"
_JOB_FILE = "order.json"  # ``kind``, ``subject``, ``arguments``, ``begun``
_PROCESS_FILE = "process.json"  # ``pid`` of the job's process
_LOG_FILE = "output.log"  # what the command prints
_OUTCOME_FILE = "outcome.json"  # ``exit_code``; exists when the command has ended
_LOCK_FILE = "lock"  # held by the job's process: the kernel releases it however that ends
_MAX_FILE = 1 << 20  # bytes of a file that is read
_MAX_OUTPUT = 4096  # bytes of the log's end that are shown
_MAX_ENDED = 200  # ended jobs; older ones are forgotten
# errors of reading a stranger's files; an infinity is no integer (OverflowError)
_BAD_JOB_ERRORS = (
    *(OSError, UserError, ValueError, LookupError),
    *(TypeError, OverflowError, RecursionError),
)


class JobState(StrEnum):
    """State of a job; it has failed if its exit code is not 0, or if it was killed."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Job:
    """A command that runs or has run.

    Attributes
    ----------
    id : in addresses; later jobs sort after earlier ones
    kind : one word: ``crawl``, ``train``, ``fetch``, ``collect``
    subject : name, in the folder, of the crawl or topic it is about
    arguments : of ``focuscrawl``
    begun : ISO 8601, UTC
    exit_code : None while it runs, and if it was killed
    said : the end of what it printed
    """

    id: str
    kind: str
    subject: str
    arguments: list[str]
    started_at: str
    state: JobState
    exit_code: int | None
    output: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields under the names of the JSON API."""
        found = asdict(self)
        found["begun"], found["said"] = found.pop("started_at"), found.pop("output")
        return found


class Jobs:
    """Starts commands in `root`, and finds those started earlier.

    Each has a folder in ``.studio/jobs`` with its arguments, its output and its exit code.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def _jobs(self) -> Path:
        """Their folder; UserError if that is a link, or behind one."""
        return plain_below(self._root, _FOLDER)

    def start(self, kind: str, subject: str, arguments: Sequence[str]) -> Job:
        """Start ``focuscrawl`` with `arguments`, in the folder; for the parameters see `Job`.

        Raises
        ------
        UserError
            The folder cannot be written, or the command would follow a link in it.
        """
        _refuse_links(self._root, arguments)
        now = datetime.now(UTC)
        name = f"{now:%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}"
        folder = self._jobs / name
        order = {"kind": kind, "subject": subject, "arguments": list(arguments)}
        order |= {"begun": now.isoformat(timespec="seconds")}
        try:
            folder.mkdir(parents=True)
            write_whole(folder / _JOB_FILE, json.dumps(order))
        except OSError as error:
            raise UserError(f"{folder} cannot be written: {error.strerror}") from None
        # the arguments are passed on, not read from the file, which somebody else may have written
        command = ["-m", "focuscrawl.studio.jobs", str(folder), *arguments]
        # a session of its own: Ctrl-C at the studio's terminal does not reach it
        process = start_python(
            command,
            variables=PROCESS_ENVIRONMENT,
            cwd=self._root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        with process.stdout as begun:
            begun.read(1)  # now it holds its lock
        threading.Thread(target=process.wait, daemon=True).start()  # leaves no zombie
        self._remove_oldest()
        return self.job(name)

    def job(self, name: str) -> Job:
        """Return a job; UserError if there is none of this name."""
        if "/" not in name and name in self._names():
            found = self._read_job(name)
            if found is not None:
                return found
        raise UserError(f"no job {name!r:.100}: see the list of jobs")

    def all(self, *, kind: str | None = None, subject: str | None = None) -> list[Job]:
        """Return the jobs, the newest first; only of one kind, or about one subject, if given."""
        found = [self._read_job(name) for name in reversed(self._names())]
        return [
            job
            for job in found
            if job is not None and kind in (None, job.kind) and subject in (None, job.subject)
        ]

    def running(self, kind: str, subject: str) -> Job | None:
        """Return a job of this kind about this subject that runs; None if there is none."""
        found = self.all(kind=kind, subject=subject)
        return next((job for job in found if job.state is JobState.RUNNING), None)

    def stop(self, name: str) -> Job:
        """Ask a running job to stop, as Ctrl-C does; see `job`."""
        job = self.job(name)
        if job.state is JobState.RUNNING:
            said = self._read_json(name, _PROCESS_FILE)
            with suppress(ProcessLookupError, KeyError, TypeError, ValueError, PermissionError):
                os.kill(int(said["pid"]), signal.SIGINT)
        return job

    def _names(self) -> list[str]:
        try:
            with os.scandir(self._jobs) as found:
                return sorted(each.name for each in found if each.is_dir(follow_symlinks=False))
        except (OSError, UserError):
            return []

    def _read_job(self, name: str) -> Job | None:
        """Return a job; None if its files are not those of a job."""
        try:
            # before the outcome: the job may end in between
            running = is_held(self._jobs / name / _LOCK_FILE)
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
            with open(self._jobs / name / file, "rb", opener=open_plain) as opened:
                found = json.loads(opened.read(_MAX_FILE))
        except FileNotFoundError:
            return {}
        if not isinstance(found, dict):
            raise TypeError(file)
        return found

    def _read_output(self, name: str) -> str:
        try:
            with open(self._jobs / name / _LOG_FILE, "rb", opener=open_plain) as opened:
                size = os.fstat(opened.fileno()).st_size
                opened.seek(max(0, size - _MAX_OUTPUT))
                end = opened.read(_MAX_OUTPUT).decode(errors="replace")
        except FileNotFoundError:
            return ""
        # of a progress bar its last state
        lines = (line.rpartition("\r")[2] for line in end.replace("\r\n", "\n").split("\n"))
        return "\n".join(line.rstrip() for line in lines).strip()

    def _remove_oldest(self) -> None:
        for name in self._names()[:-_MAX_ENDED]:
            folder = plain_below(self._jobs, name)
            with suppress(UserError):  # the lock is a link: the folder may not be a job's
                if not is_held(folder / _LOCK_FILE):
                    shutil.rmtree(folder, ignore_errors=True)  # follows no link either


def _refuse_links(root: Path, arguments: Sequence[str]) -> None:
    """Raise `UserError` if a command would follow a link in `root`: paths there begin ``./``."""
    for each in arguments:
        said = each if each.startswith("./") else each.partition("=")[2]
        if said.startswith("./"):
            plain_below(root, said)


def main() -> None:
    """Run ``focuscrawl ARGUMENTS`` for the job in FOLDER; print a byte when it holds its lock."""
    folder, arguments = Path(sys.argv[1]), sys.argv[2:]
    with FileLock(folder / _LOCK_FILE, fallback_to_soft=False):
        write_whole(folder / _PROCESS_FILE, json.dumps({"pid": os.getpid()}))
        os.write(1, b"!")
        os.close(1)
        command = ["-m", "focuscrawl", *arguments]
        with open(folder / _LOG_FILE, "wb", opener=open_plain) as log:
            process = start_python(command, stdout=log, stderr=log)

            def forward_signal(signum: int, _: object) -> None:
                process.send_signal(signum)

            for each in (signal.SIGINT, signal.SIGTERM):
                signal.signal(each, forward_signal)
            code = process.wait()
        write_whole(folder / _OUTCOME_FILE, json.dumps({"exit_code": code}))


if __name__ == "__main__":
    main()
