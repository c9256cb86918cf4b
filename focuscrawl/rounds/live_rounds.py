"""A round's fetches of the live Web in one bucket, by a process of Scrapy."""

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


_EVERY = 20.0  # seconds between two copies
_RECORDINGS = "*.warc.gz"
_SPIDER = "focuscrawl.round_spider"  # not among the spiders of the project: nobody else needs it
# not `scrapy crawl`: that reads the `scrapy.cfg` of the current folder, and imports from there
_PROGRAM = (
    "import sys; from focuscrawl.commands.anywhere import run_round; run_round(sys.argv[1:])"
)
_LOOK = 0.5  # seconds between two looks at the process
_PATIENCE = 30.0  # seconds in which an earlier process of the task has ended


class UnderWay:
    """The folder of a bucket's fetches in a round, and a copy of it.

    Where the tables are on this machine the folder is beside them, and the next try of the task
    resumes it. Elsewhere it is a scratch folder, whose store and WARC files are copied to the
    tables while they grow, and from there by the next try, on whatever machine.

    Attributes
    ----------
    folder : where it is on this machine
    """

    def __init__(self, tables: Tables, bucket: int, round_: int) -> None:
        self._tables = tables
        self._name = f"under-way/{bucket:03}-{round_:05}"
        beside = tables.local(self._name)
        self.folder = Path(tempfile.mkdtemp()) if beside is None else beside
        self.folder.mkdir(parents=True, exist_ok=True)
        self._apart = beside is None
        self._copied: dict[str, int] = {}  # bytes, of recordings
        self._due = time.monotonic() + _EVERY
        if self._apart:
            self._restore()

    def _restore(self) -> None:
        """Resume from what an earlier try has copied."""
        parts = sorted(self._tables.files(f"{self._name}/recordings"))
        for part in parts:
            name, _, first = part.rpartition("@")
            # from where a half record was cut off the next copy has what is there now
            self._tables.read_copy(
                f"{self._name}/recordings/{part}", self.folder / name, int(first)
            )
        for name in {part.rpartition("@")[0] for part in parts}:
            WarcRecorder(self.folder / name).close()  # cuts half a record off
            self._copied[name] = (self.folder / name).stat().st_size
        store = f"{self._name}/{CrawlFolder.STORE}"
        if self._tables.exists(store):
            self._tables.read_copy(store, self.folder / CrawlFolder.STORE)

    def copy_if_due(self) -> None:
        """Copy what is new if the last copy is old."""
        if time.monotonic() >= self._due:
            self.copy()
            self._due = time.monotonic() + _EVERY

    def copy(self) -> None:
        """Copy what is new, if the tables are elsewhere; what the store has is recorded, too."""
        path = self.folder / CrawlFolder.STORE
        if not self._apart or not path.exists():
            return
        snapshot = self.folder / "snapshot.db"
        with closing(open_database(path)) as store, closing(open_database(snapshot)) as now:
            store.backup(now)
        for each in self.folder.glob(_RECORDINGS):  # before the store, which names what they have
            first = self._copied.get(each.name, 0)
            name = f"{self._name}/recordings/{each.name}@{first:012}"
            self._copied[each.name] = first + self._tables.write_copy(name, each, first)
        self._tables.write_copy(f"{self._name}/{CrawlFolder.STORE}", snapshot)
        snapshot.unlink()

    def close(self) -> None:
        """Remove the folder of a round that has been fetched."""
        shutil.rmtree(self.folder, ignore_errors=True)


def keep_recordings(tables: Tables, folder: Path, bucket: int, round_: int) -> None:
    """Copy the WARC files in a crawl's folder to where they are kept, beside the tables."""
    for path in folder.glob(_RECORDINGS):
        tables.write_copy(f"recorded/{bucket:03}/{round_:05}-{path.name}", path)


def fetch_live(context: RoundsContext, bucket: int, round_: int) -> None:
    """Fetch what was chosen of a bucket, by the spider ``round``.

    Its fetches are kept until the round is over, see `UnderWay`: a killed process is resumed. It
    ends with this one, however that ends, as it reads the other end of a pipe: no host is ever
    asked by it and by the next try.

    Raises
    ------
    UserError
        The process ended before the round did.
    """
    tables = context.tables
    under_way = UnderWay(tables, bucket, round_)
    log = under_way.folder / "scrapy.log"
    given = {"tables": tables.root, "bucket": bucket, "number": round_}
    settings = {"LOG_LEVEL": "WARNING", "FOCUSCRAWL_PROGRESS": 0} | context.settings
    command = ["-c", _PROGRAM, "-s", f"SPIDER_MODULES={_SPIDER}"]
    command += [part for key, value in given.items() for part in ("-a", f"{key}={value}")]
    command += ["-a", f"crawl_dir={under_way.folder}"]
    command += [part for key, value in settings.items() for part in ("-s", f"{key}={value}")]
    _wait_until_free(under_way.folder)
    with (
        log.open("ab") as output,
        start_python(command, stdin=subprocess.PIPE, stdout=output, stderr=output) as process,
    ):
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK)
            under_way.copy_if_due()
    if not tables.has(f"pages/{bucket:03}/{round_:05}"):
        under_way.copy()
        lines = log.read_text("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        raise UserError(f"round {round_} was not fetched in bucket {bucket}: {lines[-1]} ({log})")
    under_way.close()


def _wait_until_free(folder: Path) -> None:
    """Wait until no process fetches in a folder; after a while the crawl refuses to open."""
    last = time.monotonic() + _PATIENCE
    while CrawlFolder(folder).in_use and time.monotonic() < last:
        time.sleep(_LOOK)
