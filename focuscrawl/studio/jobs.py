"""Commands begun from the studio: processes of their own, that go on when the studio ends."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import is_held, open_plain, plain_below, write_whole
from focuscrawl.foundation.processes import start_python
from focuscrawl.studio.job_process import LOCK, LOG, ORDER, OUTCOME, PROCESS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: of processes that work in the folder: Scrapy looks for no ``scrapy.cfg`` there, nor above it
OWN_SETTINGS = {"SCRAPY_SETTINGS_MODULE": "focuscrawl.settings"}
_FOLDER = ".studio/jobs"
_LONGEST = 1 << 20  # bytes of a file that is read
_TAIL = 4096  # bytes of the log's end that are shown
_KEPT = 200  # ended jobs; older ones are forgotten
# what reading files of a stranger's may end in; an infinity is no integer (OverflowError)
_NO_JOB = (
    *(OSError, UserError, ValueError, LookupError),
    *(TypeError, OverflowError, RecursionError),
)


class JobState(StrEnum):
    """How far a job is."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"  #: it ended with an exit code other than 0, or was killed


@dataclass(frozen=True)
class Job:
    """A command that runs or has run.

    Attributes
    ----------
    id : what it is called in addresses; later jobs sort after earlier ones
    kind : what it does, one word: ``crawl``, ``train``, ``fetch``, ``collect``
    subject : name, in the folder, of what it is about
    arguments : what is typed after ``focuscrawl``
    begun : ISO 8601, UTC
    state : see `JobState`
    exit_code : None while it runs, and if it was killed
    said : the end of what it wrote to the terminal
    """

    id: str
    kind: str
    subject: str
    arguments: list[str]
    begun: str
    state: JobState
    exit_code: int | None
    said: str

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


class Jobs:
    """Begins commands in `root`, and finds those begun earlier.

    Each has a folder of its own in ``.studio/jobs``: what was asked, what it says, how it ended.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def _jobs(self) -> Path:
        """Their folder; `UserError` if that is a link, or behind one."""
        return plain_below(self._root, _FOLDER)

    def begin(self, kind: str, subject: str, arguments: Sequence[str]) -> Job:
        """Begin ``focuscrawl`` with `arguments`, in the folder; parameters are those of `Job`.

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
            write_whole(folder / ORDER, json.dumps(order))
        except OSError as error:
            raise UserError(f"{folder} cannot be written: {error.strerror}") from None
        command = ["-m", "focuscrawl.studio.job_process", str(folder)]
        command += arguments  # nothing is run that only a file says
        # a session of its own: Ctrl-C at the studio's terminal is not for it
        process = start_python(
            command,
            variables=OWN_SETTINGS,
            cwd=self._root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        with process.stdout as begun:
            begun.read(1)  # it holds its lock now, and is found to run
        threading.Thread(target=process.wait, daemon=True).start()  # no zombie is left
        self._forget_oldest()
        return self.job(name)

    def job(self, name: str) -> Job:
        """Return a job; UserError if there is none of that name."""
        if "/" not in name and name in self._names():
            found = self._read(name)
            if found is not None:
                return found
        raise UserError(f"no job {name!r:.100}: see the list of jobs")

    def all(self, *, kind: str | None = None, subject: str | None = None) -> list[Job]:
        """Return the jobs, the newest first; of one kind, about one subject if asked."""
        found = [self._read(name) for name in reversed(self._names())]
        return [
            job
            for job in found
            if job is not None and kind in (None, job.kind) and subject in (None, job.subject)
        ]

    def end(self, name: str) -> Job:
        """Ask a running job to end, as Ctrl-C does; see `job`."""
        job = self.job(name)
        if job.state is JobState.RUNNING:
            said = self._load(name, PROCESS)
            with suppress(ProcessLookupError, KeyError, TypeError, ValueError, PermissionError):
                os.kill(int(said["pid"]), signal.SIGINT)
        return job

    def _names(self) -> list[str]:
        try:
            with os.scandir(self._jobs) as found:
                return sorted(each.name for each in found if each.is_dir(follow_symlinks=False))
        except (OSError, UserError):
            return []

    def _read(self, name: str) -> Job | None:
        """Return a job; None if its files are none of ours."""
        try:
            running = is_held(
                self._jobs / name / LOCK
            )  # before the outcome: it may end in between
            order = self._load(name, ORDER)
            code = self._load(name, OUTCOME).get("exit_code")
            if code is not None:
                code = int(code)
            state = JobState.DONE if code == 0 else JobState.FAILED
            return Job(
                id=name,
                kind=str(order["kind"]),
                subject=str(order["subject"]),
                arguments=list(map(str, order["arguments"])),
                begun=str(order["begun"]),
                state=JobState.RUNNING if running and code is None else state,
                exit_code=code,
                said=self._said(name),
            )
        except _NO_JOB:
            return None

    def _load(self, name: str, file: str) -> dict[str, Any]:
        try:
            with open(self._jobs / name / file, "rb", opener=open_plain) as opened:
                found = json.loads(opened.read(_LONGEST))
        except FileNotFoundError:
            return {}
        if not isinstance(found, dict):
            raise TypeError(file)
        return found

    def _said(self, name: str) -> str:
        try:
            with open(self._jobs / name / LOG, "rb", opener=open_plain) as opened:
                size = os.fstat(opened.fileno()).st_size
                opened.seek(max(0, size - _TAIL))
                end = opened.read(_TAIL).decode(errors="replace")
        except FileNotFoundError:
            return ""
        # of a line that was drawn again and again, what it showed last
        lines = (line.rpartition("\r")[2] for line in end.replace("\r\n", "\n").split("\n"))
        return "\n".join(line.rstrip() for line in lines).strip()

    def _forget_oldest(self) -> None:
        for name in self._names()[:-_KEPT]:
            folder = plain_below(self._jobs, name)
            with suppress(UserError):  # the lock is a link: nobody knows whose folder it is
                if not is_held(folder / LOCK):
                    shutil.rmtree(folder, ignore_errors=True)  # which follows no link either


def _refuse_links(root: Path, arguments: Sequence[str]) -> None:
    """Raise `UserError` if a command would follow a link in `root`: paths there begin ``./``."""
    for each in arguments:
        said = each if each.startswith("./") else each.partition("=")[2]
        if said.startswith("./"):
            plain_below(root, said)
