"""Sums over whole crawls, made by a process of its own and kept."""

from __future__ import annotations

import atexit
import json
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time
import weakref
from collections import OrderedDict
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl import CrawlFolder
from focuscrawl.errors import UserError
from focuscrawl.foundation.processes import start_python
from focuscrawl.report.comparison import PARTS, SHOWN, pages_of_part
from focuscrawl.report.status import open_store
from focuscrawl.report.url_tables import reading_sorted, sort_urls
from focuscrawl.studio.jobs import OWN_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from focuscrawl.foundation.databases import Database
    from focuscrawl.store import CrawlStore


_CRAWLS = 16  # that are kept at hand
_SHARE = 30  # a copy is made anew when it is as many times as old as it took: 3 % of the time
_PATIENCE = 0.15  # seconds that a request waits for the first copy


@dataclass
class SortedCopy:
    """A sorted copy of a crawl's URLs.

    Attributes
    ----------
    path : where it is
    made : when it was begun
    """

    path: Path
    made: datetime
    stamp: tuple[int, ...]
    took: float  # seconds


@dataclass
class _Crawl:
    """A crawl whose store has been checked."""

    store: CrawlStore
    file: tuple[int, int]
    lock: threading.Lock = field(default_factory=threading.Lock)
    copy: SortedCopy | None = None
    sorting: threading.Event | None = None
    wrong: Exception | None = None


class OpenCrawls:
    """Opens stores of crawls in folders, and keeps a sorted copy of each; for any thread.

    Copies are in a folder of their own that goes with the studio.
    """

    def __init__(self) -> None:
        self._crawls: OrderedDict[Path, _Crawl] = OrderedDict()
        self._lock = threading.Lock()
        self._folder = Path(tempfile.mkdtemp(prefix="focuscrawl-studio-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._made = 0

    @contextmanager
    def store(self, path: Path) -> Iterator[CrawlStore]:
        """Open the store of the crawl in `path`; it is checked the first time only.

        Raises
        ------
        UserError
            It cannot be read.
        """
        with self._readable(path), closing(self._crawl(path).store.reopened()) as store:
            yield store

    @contextmanager
    def sorted(self, path: Path) -> Iterator[tuple[Database, SortedCopy] | None]:
        """Open store and sorted copy of the crawl in `path`; None: it is being sorted.

        A copy that is out of date is made anew in the background.
        """
        with self._readable(path):
            crawl = self._crawl(path)
            copy = self._copy(crawl, path)
            if copy is None:
                yield None
                return
            with reading_sorted(crawl.store, copy.path) as connection:
                yield connection, copy

    @contextmanager
    def _readable(self, path: Path) -> Iterator[None]:
        """Say in a sentence what is wrong with a store that was sound, and check it next time."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            with self._lock:
                self._crawls.pop(path, None)
            raise UserError(f"the store in {path} cannot be read ({error})") from None

    def _crawl(self, path: Path) -> _Crawl:
        about = CrawlFolder(path).store_path.stat()
        file = about.st_dev, about.st_ino
        with self._lock:
            crawl = self._crawls.get(path)
            if crawl is not None and crawl.file == file:
                self._crawls.move_to_end(path)
                return crawl
        store = open_store(path)
        store.close()  # what is read is read through others of its kind
        crawl = _Crawl(store, file)
        with self._lock:
            self._crawls[path] = crawl
            while len(self._crawls) > _CRAWLS:
                _, oldest = self._crawls.popitem(last=False)
                if oldest.copy is not None:
                    oldest.copy.path.unlink(missing_ok=True)
        return crawl

    def _copy(self, crawl: _Crawl, path: Path) -> SortedCopy | None:
        """Return the last copy, after a moment if there is none; have it made anew if need be."""
        stamp = stamp_of(path)
        with crawl.lock:
            copy = crawl.copy
            if crawl.wrong is not None:
                wrong, crawl.wrong = crawl.wrong, None
                raise wrong
            if crawl.sorting is None and _is_old(copy, stamp):
                crawl.sorting = threading.Event()
                arguments = (crawl, stamp, crawl.sorting)
                threading.Thread(target=self._sort, args=arguments, daemon=True).start()
            sorting = crawl.sorting
        if sorting is not None and (copy is None or copy.took < _PATIENCE):
            sorting.wait(_PATIENCE)
            with crawl.lock:
                return crawl.copy
        return copy

    def _sort(self, crawl: _Crawl, stamp: tuple[int, ...], done: threading.Event) -> None:
        with self._lock:
            self._made += 1
            path = self._folder / f"{self._made}.db"
        begun, now = time.monotonic(), datetime.now(UTC)
        copy, wrong = None, None
        try:
            sort_urls(crawl.store, path)
            copy = SortedCopy(path, now, stamp, time.monotonic() - begun)
        except Exception as error:
            path.unlink(missing_ok=True)
            wrong = error
        with crawl.lock:
            if copy is not None:
                if crawl.copy is not None:
                    crawl.copy.path.unlink(missing_ok=True)  # who reads it has it open
                crawl.copy = copy
            crawl.wrong, crawl.sorting = wrong, None
        done.set()


def stamp_of(path: Path) -> tuple[int, ...]:
    """Return what changes whenever the store of the crawl in `path` does."""
    store = CrawlFolder(path).store_path
    found = list[int]()
    for file in (store, store.with_name(f"{store.name}-wal")):
        try:
            about = file.stat()
        except FileNotFoundError:
            continue
        found += [about.st_ino, about.st_size, about.st_mtime_ns]
    return tuple(found)


def _is_old(copy: SortedCopy | None, stamp: tuple[int, ...]) -> bool:
    if copy is None:
        return True
    age = (datetime.now(UTC) - copy.made).total_seconds()
    return copy.stamp != stamp and age > _SHARE * copy.took


_KEPT = 32


@dataclass(frozen=True)
class Sum:
    """What is known of a sum.

    Attributes
    ----------
    value : as JSON has it; None: not known yet, or not to be had
    error : why it is not to be had, a sentence
    as_of : when it was begun, ISO 8601, UTC
    running : whether it is being made, for the first time or anew
    """

    value: Any = None
    error: str | None = None
    as_of: str | None = None
    running: bool = False


@dataclass
class _Entry:
    known: Sum
    stamp: object = None
    ended: float = 0.0
    took: float = 0.0


class Background:
    """Has `focuscrawl.studio.sums_process` make sums, one at a time; for any thread.

    Parameters
    ----------
    root : folder that the processes work in
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._entries: dict[tuple[str, ...], _Entry] = {}
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        atexit.register(self._close)

    def ask(self, what: str, *crawls: Path, option: str = "") -> Sum:
        """Return what is known by now, and have it made if need be.

        Parameters
        ----------
        what : one of `focuscrawl.studio.sums_process.SUMS`
        crawls : folders of the crawls it is of
        option : what else the sum depends on
        """
        key = (what, option, *map(str, crawls))
        stamp = [stamp_of(path) for path in crawls]
        with self._lock:
            entry = self._entries.setdefault(key, _Entry(Sum()))
            old = entry.stamp != stamp and time.monotonic() - entry.ended > _SHARE * entry.took
            if old and not entry.known.running:
                entry.known = Sum(
                    entry.known.value, entry.known.error, entry.known.as_of, running=True
                )
                threading.Thread(target=self._make, args=(key, stamp), daemon=True).start()
            while len(self._entries) > _KEPT:
                del self._entries[next(iter(self._entries))]
            return entry.known

    def _make(self, key: tuple[str, ...], stamp: object) -> None:
        with self._turn:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            begun = time.monotonic()
            command = ["-m", "focuscrawl.studio.sums_process", *key]
            with self._lock:
                if self._closed:
                    return
                try:
                    process = start_python(
                        command,
                        variables=OWN_SETTINGS,
                        cwd=self._root,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                    )
                except OSError as error:
                    self._entries[key] = _Entry(Sum(None, f"It could not be made: {error}", now))
                    return
                self._process = process
            said, _ = process.communicate()
            self._process = None
        try:
            found = json.loads(said)
            known = Sum(found.get("value"), found.get("error"), now)
        except ValueError:
            known = Sum(
                None, "It could not be made: see what the studio says in its terminal.", now
            )
            stamp = None  # not the crawl's fault: it is tried again
        with self._lock:
            ended = time.monotonic()
            self._entries[key] = _Entry(known, stamp, ended, ended - begun)

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.terminate()


class Compared:
    """Pairs of crawls that are compared; their pages are in files that go with the studio."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._folder = Path(tempfile.mkdtemp(prefix="focuscrawl-studio-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def ask(self, a: Path, b: Path) -> Sum:
        """Return what is known by now; see `focuscrawl.report.comparison.two_crawls`."""
        lists = self._lists(a, b)
        found = self._background.ask("compare", a, b, option=str(lists))
        kept = sorted(self._folder.glob("*.db"), key=lambda path: path.stat().st_mtime)
        for old in kept[:-_KEPT]:
            if old != lists:
                old.unlink(missing_ok=True)
        return found

    def pages(self, a: Path, b: Path, part: str, start: str) -> dict[str, Any]:
        """Return some pages of a part, and where the next begin.

        Parameters
        ----------
        part : one of `PARTS`
        start : place of the first

        Returns
        -------
        ``rows``, and ``next``, a place or None

        Raises
        ------
        UserError
            There is no such part, or the crawls have not been compared.
        """
        if part not in PARTS or not (start.isascii() and start.isdecimal() and len(start) < 10):
            raise UserError(f"part is one of {', '.join(PARTS)}, and start a place, from 0")
        lists = self._lists(a, b)
        if not lists.exists():
            raise UserError("these two crawls have not been compared yet: do that first")
        rows = pages_of_part(lists, part, int(start), SHOWN + 1)
        more = len(rows) > SHOWN
        return {"rows": rows[:SHOWN], "next": int(start) + SHOWN if more else None}

    def _lists(self, a: Path, b: Path) -> Path:
        name = sha256("\n".join(map(str, (a, b))).encode()).hexdigest()
        return self._folder / f"{name}.db"
