"""What a bucket's live fetches of a round have so far: a crawl's folder, and a copy of it.

Where the tables are on this machine the folder is beside them, and whoever does the task again
goes on with it. Elsewhere it is a scratch folder, whose store and WARC files are copied to the
tables while they grow, and from there by whoever does the task again, on whatever machine.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.crawl import CrawlFolder
from focuscrawl.foundation.databases import open_database
from focuscrawl.webs import WarcRecorder

if TYPE_CHECKING:
    from focuscrawl.rounds.tables import Tables

_EVERY = 20.0  # seconds between two copies
_RECORDINGS = "*.warc.gz"


class UnderWay:
    """The folder of a bucket's fetches in a round.

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
            self._take_up()

    def _take_up(self) -> None:
        """Go on with what somebody else has copied, who did not come to the end."""
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
        if self._tables.has_file(store):
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
        for each in self.folder.glob(_RECORDINGS):  # before the store that says what they have
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
