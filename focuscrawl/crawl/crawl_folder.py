"""The folder of a crawl: its store, its lock, and the file by which people control the crawl."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import (
    BETWEEN,
    TRIES,
    changing,
    is_held,
    open_plain,
    refuse_link,
    write_whole,
)
from focuscrawl.store import CrawlStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


#: key in the identity of a crawl in rounds: where its tables are
TABLES_KEY = "tables"
_LONGEST = 64  # characters of a lock that are read
_LONGEST_ORDER = 4096  # bytes of a control file that are read


class CrawlPhase(StrEnum):
    """What the process that holds a crawl's lock is doing, as written into the lock."""

    STARTING = "starting"
    CRAWLING = "crawling"
    STOPPING = "stopping"
    REJUDGING = "judging pages again"


class CrawlFolder:
    """A crawl's folder, with its store and its lock.

    Attributes
    ----------
    path : the folder
    """

    STORE = "crawl.db"
    LOCK = "crawl.lock"

    def __init__(self, path: Path) -> None:
        self.path = path
        # the kernel releases it with the process, however that ends: so never a mere file
        self._lock = FileLock(
            path / self.LOCK,
            TRIES * BETWEEN,
            poll_interval=BETWEEN,
            thread_local=False,
            fallback_to_soft=False,
        )

    @classmethod
    def new_name(cls, topic: str, now: datetime) -> Path:
        """Return ``crawls/<topic>-<time>``, a folder that does not exist yet."""
        slug = re.sub(r"[^\w.-]+", "_", topic.strip("/").rpartition("/")[2]).strip("_") or "crawl"
        stem = f"{slug}-{now:%Y%m%d-%H%M%S}"
        path, n = Path("crawls") / stem, 1
        while path.exists():
            n += 1
            path = Path("crawls") / f"{stem}-{n}"
        return path

    @property
    def store_path(self) -> Path:
        """Where the store is, or will be."""
        return self.path / self.STORE

    @property
    def exists(self) -> bool:
        """True if there is a crawl to resume."""
        return self.store_path.exists()

    def identity(self) -> dict[str, str]:
        """Return the identity of the crawl, see `CrawlStore.identity`."""
        store = CrawlStore.open(self.store_path, read_only=True)
        try:
            return store.identity()
        finally:
            store.close()

    def open_store(self, identity: Mapping[str, str], about: Mapping[str, str]) -> CrawlStore:
        """Open the store of this crawl, or create folder and store for a new one.

        Parameters
        ----------
        identity : what another crawl would differ in; keys are named in messages
        about : stored with a new crawl for people to read

        Raises
        ------
        UserError
            The folder has another crawl, is locked by a running crawl, or cannot be written.
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
        """Create the folder if need be, and lock it.

        Raises
        ------
        UserError
            It is locked by a running crawl, or cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.acquire()
        except OSError as error:
            raise UserError(f"crawl_dir {self.path} cannot be written: {error.strerror}") from None

    @property
    def in_use(self) -> bool:
        """True while a process has the lock."""
        return is_held(self.path / self.LOCK)

    @property
    def phase(self) -> CrawlPhase | None:
        """What the process with the lock is doing; None: there is no such process."""
        if not self.in_use:
            return None
        try:
            with open(self.path / self.LOCK, encoding="ascii", opener=open_plain) as lock:
                return CrawlPhase(lock.read(_LONGEST))
        except (OSError, UserError, ValueError):
            return CrawlPhase.CRAWLING

    def set_phase(self, doing: CrawlPhase) -> None:
        """Write into the lock what this process is doing, if it has the lock."""
        if self._lock.is_locked:
            # on a full disk it stays as it is
            with (
                suppress(OSError),
                open(self.path / self.LOCK, "w", encoding="ascii", opener=open_plain) as lock,
            ):
                lock.write(doing)

    def release(self) -> None:
        """Release the lock."""
        self._lock.release(force=True)

    def _check(self, store: CrawlStore, identity: Mapping[str, str]) -> None:
        kept = store.identity()
        tables = kept.get(TABLES_KEY)
        if tables is not None:
            store.close()
            raise UserError(
                f"crawl_dir {self.path} shows a crawl in rounds: go on with its tables {tables}, "
                "see focuscrawl rounds --help, or name another crawl_dir"
            )
        for key, value in identity.items():
            if kept.get(key, "") != value:
                store.close()
                raise UserError(
                    f"crawl_dir {self.path} holds another crawl: its {key} is "
                    f"{kept.get(key) or 'none'}, not {value or 'none'}; name another crawl_dir"
                )

    def acquire(self, doing: CrawlPhase = CrawlPhase.STARTING) -> None:
        """Lock the folder; UserError if a running crawl has the lock."""
        refuse_link(self.path / self.LOCK)
        try:
            self._lock.acquire()
        except Timeout:
            raise UserError(
                f"crawl_dir {self.path} is being crawled by another process: wait for it, "
                "or name another crawl_dir"
            ) from None
        self.set_phase(doing)


class Command(StrEnum):
    """What a crawl is asked to do."""

    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"


class FileControl:
    """Commands to the crawl in `folder`, whether it runs or not, in a file.

    A pause holds until it is taken back, also over a restart. A stop and another budget are for
    the run that sees them.

    Attributes
    ----------
    name : what people call the crawl
    """

    FILE = "control.json"
    poll_interval = 0.5  #: seconds

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._path = folder / self.FILE

    @property
    def command(self) -> Command:
        """The present command; RUN if the file makes no sense."""
        try:
            return Command(self._asked()["wanted"])
        except (ValueError, LookupError, TypeError):
            return Command.RUN

    @property
    def budget(self) -> int | None:
        """Another budget, 0 for no limit; None: there is none."""
        budget = self._asked().get("budget")
        if isinstance(budget, bool) or not isinstance(budget, int):
            return None
        return budget if budget >= 0 else None

    def send(self, wanted: Command) -> None:
        """Give the crawl a command; the file changes as a whole.

        Raises
        ------
        UserError
            The folder cannot be written.
        """
        with self._changing():
            self._write(wanted, self.budget)

    def set_budget(self, budget: int) -> None:
        """Give the crawl that runs another budget, 0 for none; raises as `ask` does."""
        with self._changing():
            self._write(self.command, budget)

    def clear_command(self, wanted: Command) -> None:
        """Remove a command that was for one run only, unless there is another since."""
        if wanted is Command.STOP and self.command is Command.STOP:
            with self._changing():
                if self.command is Command.STOP:
                    self._path.unlink(missing_ok=True)

    def clear_budget(self, budget: int) -> None:
        """Remove a budget, unless there is another since."""
        with self._changing():
            if self.budget == budget:
                self._write(self.command, None)

    def _asked(self) -> dict[str, Any]:
        try:
            with open(self._path, "rb", opener=open_plain) as file:
                asked = json.loads(file.read(_LONGEST_ORDER))
        except (OSError, UserError, ValueError, RecursionError):
            return {}
        return asked if isinstance(asked, dict) else {}

    def _write(self, wanted: Command, budget: int | None) -> None:
        if wanted is Command.RUN and budget is None:
            self._path.unlink(missing_ok=True)
            return
        at = datetime.now(UTC).isoformat(timespec="seconds")
        asked: dict[str, Any] = {"wanted": wanted, "at": at}
        if budget is not None:
            asked["budget"] = budget
        write_whole(self._path, json.dumps(asked) + "\n")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            with changing(self._path):
                yield
        except OSError as error:
            raise UserError(
                f"{self._path} cannot be written ({error.strerror}): do it as the user who crawls"
            ) from None
