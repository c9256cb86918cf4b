"""Fetches the URLs of one bucket (group of hosts) from the live Web in a child process."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.crawl import CrawlFolder
from focuscrawl.errors import UserError
from focuscrawl.foundation.databases import open_database
from focuscrawl.foundation.processes import start_python
from focuscrawl.webs import WarcRecorder

if TYPE_CHECKING:
    from focuscrawl.rounds.context import RoundsContext
    from focuscrawl.rounds.tables import Tables


_COPY_INTERVAL = 20.0  # seconds
_RECORDINGS = "*.warc.gz"
_SPIDER = "focuscrawl.round_spider"  # an internal spider, not listed by `scrapy list`
# not `scrapy crawl`, which would run code that the `scrapy.cfg` of the current folder names
_PROGRAM = (
    "import sys; from focuscrawl.commands.anywhere import run_round; run_round(sys.argv[1:])"
)
_POLL_INTERVAL = 0.5  # seconds between two checks of the process
_LOCK_TIMEOUT = 30.0  # seconds to wait for an earlier process of the task


class LiveFetchFolder:
    """The crawl folder for live fetches of one round (batch) and one bucket (group of hosts).

    If the tables are on this machine, the crawl folder is next to the tables, and a repeated task
    resumes the crawl in the folder. If the tables are on remote storage, the crawl folder is
    temporary, and its store and WARC files are regularly copied to the remote storage. A repeated
    task on any machine then restores the crawl folder from the remote storage.

    Attributes
    ----------
    folder : Path
        Path on this machine.
    """

    def __init__(self, tables: Tables, bucket: int, round_: int) -> None:
        self._tables = tables
        self._name = f"under-way/{bucket:03}-{round_:05}"
        local = tables.local_path(self._name)
        self.folder = Path(tempfile.mkdtemp()) if local is None else local
        self.folder.mkdir(parents=True, exist_ok=True)
        self._is_remote = local is None
        self._copied: dict[str, int] = {}  # copied bytes of each recording
        self._next_copy = time.monotonic() + _COPY_INTERVAL
        if self._is_remote:
            self._restore()

    def _restore(self) -> None:
        """Restore the folder from the copies of an earlier task."""
        parts = sorted(self._tables.files(f"{self._name}/recordings"))
        for part in parts:
            name, _, first = part.rpartition("@")
            # a later copy overwrites an incomplete record at the end of the copy before
            self._tables.read_copy(
                f"{self._name}/recordings/{part}", self.folder / name, int(first)
            )
        for name in {part.rpartition("@")[0] for part in parts}:
            WarcRecorder(self.folder / name).close()  # cuts off an incomplete record
            self._copied[name] = (self.folder / name).stat().st_size
        store = f"{self._name}/{CrawlFolder.STORE}"
        if self._tables.exists(store):
            self._tables.read_copy(store, self.folder / CrawlFolder.STORE)

    def copy_if_due(self) -> None:
        """Copy new data to remote storage if the last copy is old."""
        if time.monotonic() >= self._next_copy:
            self.copy()
            self._next_copy = time.monotonic() + _COPY_INTERVAL

    def copy(self) -> None:
        """Copy new data to remote storage: first the WARC files, and then the store."""
        path = self.folder / CrawlFolder.STORE
        if not self._is_remote or not path.exists():
            return
        snapshot = self.folder / "snapshot.db"
        with closing(open_database(path)) as store, closing(open_database(snapshot)) as now:
            store.backup(now)
        for each in self.folder.glob(_RECORDINGS):
            first = self._copied.get(each.name, 0)
            name = f"{self._name}/recordings/{each.name}@{first:012}"
            self._copied[each.name] = first + self._tables.write_copy(name, each, first)
        self._tables.write_copy(f"{self._name}/{CrawlFolder.STORE}", snapshot)
        snapshot.unlink()

    def close(self) -> None:
        """Remove the crawl folder after the round of fetches is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)


def keep_recordings(tables: Tables, folder: Path, bucket: int, round_: int) -> None:
    """Copy the WARC files of a crawl folder to the folder with the tables."""
    for path in folder.glob(_RECORDINGS):
        tables.write_copy(f"recorded/{bucket:03}/{round_:05}-{path.name}", path)


def fetch_live(context: RoundsContext, bucket: int, round_: int) -> None:
    """Fetch the URLs selected from a bucket (group of hosts) with the spider ``round``.

    A `LiveFetchFolder` keeps the fetches until the round (batch of fetches) is over, so a repeated
    task continues after the last fetch. The child process exits when its parent process exits, so
    two processes never send requests to one host.

    Raises
    ------
    UserError
        The child process stopped before the round was over.
    """
    tables = context.tables
    live_folder = LiveFetchFolder(tables, bucket, round_)
    log = live_folder.folder / "scrapy.log"
    given = {"tables": tables.root, "bucket": bucket, "number": round_}
    settings = {"LOG_LEVEL": "WARNING", "FOCUSCRAWL_PROGRESS": 0} | context.settings
    command = ["-c", _PROGRAM, "-s", f"SPIDER_MODULES={_SPIDER}"]
    command += [part for key, value in given.items() for part in ("-a", f"{key}={value}")]
    command += ["-a", f"crawl_dir={live_folder.folder}"]
    command += [part for key, value in settings.items() for part in ("-s", f"{key}={value}")]
    _wait_until_free(live_folder.folder)
    with (
        log.open("ab") as output,
        start_python(command, stdin=subprocess.PIPE, stdout=output, stderr=output) as process,
    ):
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_INTERVAL)
            live_folder.copy_if_due()
    if not tables.has(f"pages/{bucket:03}/{round_:05}"):
        live_folder.copy()
        lines = log.read_text("utf-8", "replace").strip().splitlines() or ["no message"]
        raise UserError(
            f"the fetches of round {round_} in bucket {bucket} stopped early: {lines[-1]}; see "
            f"the log {log}"
        )
    live_folder.close()


def _wait_until_free(folder: Path) -> None:
    """Wait until no other process has the folder, for some time at most."""
    last = time.monotonic() + _LOCK_TIMEOUT
    while CrawlFolder(folder).in_use and time.monotonic() < last:
        time.sleep(_POLL_INTERVAL)
