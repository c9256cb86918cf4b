"""Stores of crawls that are looked at again and again: checked once, sorted in the background."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import weakref
from collections import OrderedDict
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from focuscrawl.crawl import CrawlFolder
from focuscrawl.errors import UserError
from focuscrawl.report.sorted_urls import reading_sorted, sort_urls
from focuscrawl.report.stores import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

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
    def sorted(self, path: Path) -> Iterator[tuple[Connection, SortedCopy] | None]:
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
        except sa.exc.DatabaseError as error:
            with self._lock:
                self._crawls.pop(path, None)
            raise UserError(f"the store in {path} cannot be read ({error.orig})") from None

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
