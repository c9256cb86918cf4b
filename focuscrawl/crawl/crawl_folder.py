"""The folder of a crawl: its database, lock file and control file (pause, stop, budget)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import (
    LOCK_RETRY_DELAY,
    LOCK_TRIES,
    is_locked,
    open_nofollow,
    refuse_link,
    reporting_write_errors,
    update_lock,
    write_atomically,
)
from focuscrawl.store import CrawlStore

#: key in the identity of a crawl in rounds; the value is the folder of its tables
TABLES_KEY = "tables"
_LOCK_LENGTH = 64  # characters of a lock file; a shorter phase is followed by spaces
_MAX_CONTROL_SIZE = 4096  # bytes


class CrawlPhase(StrEnum):
    """Phase of the process that locks a crawl's folder, as written into the lock file."""

    STARTING = "starting"
    CRAWLING = "crawling"
    STOPPING = "stopping"
    REJUDGING = "judging pages again"


class CrawlFolder:
    """The folder of a crawl, with its store (database) and its lock file."""

    STORE = "crawl.db"
    LOCK = "crawl.lock"

    def __init__(self, path: Path) -> None:
        self.path = path
        # no soft lock: the kernel releases a file lock even if the process is killed
        self._lock = FileLock(
            path / self.LOCK,
            LOCK_TRIES * LOCK_RETRY_DELAY,
            poll_interval=LOCK_RETRY_DELAY,
            thread_local=False,
            fallback_to_soft=False,
        )

    @classmethod
    def new_name(cls, topic: str, now: datetime) -> Path:
        """Return the folder name ``crawls/<topic>-<time>``, which is not in use yet."""
        slug = re.sub(r"[^\w.-]+", "_", topic.strip("/").rpartition("/")[2]).strip("_") or "crawl"
        stem = f"{slug}-{now:%Y%m%d-%H%M%S}"
        path, n = Path("crawls") / stem, 1
        while path.exists():
            n += 1
            path = Path("crawls") / f"{stem}-{n}"
        return path

    @property
    def store_path(self) -> Path:
        """Path of the crawl's database, which may not exist yet."""
        return self.path / self.STORE

    @property
    def exists(self) -> bool:
        """True if the folder contains a crawl that can be resumed."""
        return self.store_path.exists()

    def identity(self) -> dict[str, str]:
        """Return the identity of the crawl (see `CrawlStore.identity`)."""
        store = CrawlStore.open(self.store_path, read_only=True)
        try:
            return store.identity()
        finally:
            store.close()

    def open_store(self, identity: Mapping[str, str], about: Mapping[str, str]) -> CrawlStore:
        """Open the database of the crawl; for a new crawl, create the folder and the database.

        Parameters
        ----------
        identity, about : mapping of str to str
            Values that must equal those of the existing crawl, and further facts to store.

        Raises
        ------
        UserError
            The folder contains another crawl, is locked by a running crawl, or cannot be written.
        """
        self.create_and_acquire()
        try:
            if not self.exists:
                return CrawlStore.create(self.store_path, {**about, **identity})
            store = CrawlStore.open(self.store_path)
            self._check(store, identity)
        except BaseException:
            self.release()
            raise
        return store

    def create_and_acquire(self) -> None:
        """Create the folder if it does not exist, and lock the folder.

        Raises
        ------
        UserError
            The folder is locked by a running crawl, or cannot be written.
        """
        advice = "change the permissions, or name another crawl_dir"
        with reporting_write_errors(f"crawl_dir {self.path}", advice):
            self.path.mkdir(parents=True, exist_ok=True)
            self.acquire()

    @property
    def in_use(self) -> bool:
        """True while a process locks the folder."""
        return is_locked(self.path / self.LOCK)

    @property
    def phase(self) -> CrawlPhase | None:
        """Phase of the process that locks the folder; None if no process does."""
        if not self.in_use:
            return None
        try:
            with open(self.path / self.LOCK, encoding="ascii", opener=open_nofollow) as lock:
                # a process that has just locked the folder has not written its phase yet
                return CrawlPhase(lock.read(_LOCK_LENGTH).strip() or CrawlPhase.STARTING)
        except (OSError, UserError, ValueError):
            return CrawlPhase.CRAWLING

    def set_phase(self, phase: CrawlPhase) -> None:
        """Write the phase of this process to the lock file, if this process locks the folder."""
        if self._lock.is_locked:
            # on a full disk the file keeps the last phase
            with (
                suppress(OSError),
                open(self.path / self.LOCK, "r+", encoding="ascii", opener=open_nofollow) as lock,
            ):
                lock.write(phase.ljust(_LOCK_LENGTH))

    def release(self) -> None:
        """Release the lock."""
        self._lock.release(force=True)

    def _check(self, store: CrawlStore, identity: Mapping[str, str]) -> None:
        stored = store.identity()
        tables = stored.get(TABLES_KEY)
        if tables is not None:
            store.close()
            raise UserError(
                f"crawl_dir {self.path} belongs to a crawl in rounds: resume that crawl with its "
                f"tables {tables} (see focuscrawl rounds --help), or name another crawl_dir"
            )
        for key, value in identity.items():
            if stored.get(key, "") != value:
                store.close()
                raise UserError(
                    f"crawl_dir {self.path} contains another crawl: its {key} is "
                    f"{stored.get(key) or 'none'}, not {value or 'none'}; name another crawl_dir"
                )

    def acquire(self, phase: CrawlPhase = CrawlPhase.STARTING) -> None:
        """Lock the folder; raise `UserError` if another process has locked it."""
        refuse_link(self.path / self.LOCK)
        try:
            self._lock.acquire()
        except Timeout:
            raise UserError(
                f"crawl_dir {self.path} is in use by another process: wait until that process "
                "ends, or name another crawl_dir"
            ) from None
        self.set_phase(phase)


class Command(StrEnum):
    """Command to a crawl."""

    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"


class FileControl:
    """File through which users pause, resume or stop a crawl, or change its budget.

    A pause command applies until another command replaces it, even if the crawl is restarted. A
    stop command or a new budget applies to the running crawl or, if no crawl is running, to the
    next run.
    """

    FILE = "control.json"
    poll_interval = 0.5  #: seconds

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder = CrawlFolder(folder)
        self._path = folder / self.FILE

    @property
    def in_use(self) -> bool:
        """True while a process runs the crawl."""
        return self._folder.in_use

    @property
    def is_starting(self) -> bool:
        """True while a starting process drops commands that were sent to an earlier run."""
        return self._folder.phase is CrawlPhase.STARTING

    @property
    def command(self) -> Command:
        """The command in the control file; RUN if no valid control file exists."""
        try:
            return Command(self._read()["wanted"])
        except (ValueError, LookupError, TypeError):
            return Command.RUN

    @property
    def budget(self) -> int | None:
        """The new budget in the control file (0: no limit); None if there is no new budget."""
        budget = self._read().get("budget")
        if isinstance(budget, bool) or not isinstance(budget, int):
            return None
        return budget if budget >= 0 else None

    def send(self, command: Command) -> None:
        """Write a command to the control file of the crawl.

        Raises
        ------
        UserError
            The folder cannot be written.
        """
        with self._changing():
            self._write(command, self.budget)

    def set_budget(self, budget: int) -> None:
        """Write a new budget (0: no limit) to the control file; raises the errors of `send`."""
        with self._changing():
            self._write(self.command, budget)

    def clear_command(self, command: Command) -> None:
        """Remove an executed stop command from the control file, unless it has been replaced."""
        if command is Command.STOP and self.command is Command.STOP:
            with self._changing():
                if self.command is Command.STOP:
                    self._path.unlink(missing_ok=True)

    def clear_budget(self, budget: int) -> None:
        """Remove an applied budget from the control file, unless it has been replaced."""
        with self._changing():
            if self.budget == budget:
                self._write(self.command, None)

    def _read(self) -> dict[str, Any]:
        try:
            with open(self._path, "rb", opener=open_nofollow) as file:
                content = json.loads(file.read(_MAX_CONTROL_SIZE))
        except (OSError, UserError, ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}

    def _write(self, command: Command, budget: int | None) -> None:
        if command is Command.RUN and budget is None:
            self._path.unlink(missing_ok=True)
            return
        at = datetime.now(UTC).isoformat(timespec="seconds")
        content: dict[str, Any] = {"wanted": command, "at": at}
        if budget is not None:
            content["budget"] = budget
        write_atomically(self._path, json.dumps(content) + "\n")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        advice = "run this command as the user who runs the crawl"
        with reporting_write_errors(self._path, advice), update_lock(self._path):
            yield
