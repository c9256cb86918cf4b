"""Computes and caches analyses of whole crawls, such as hubs, and sorted tables of URLs.

Each analysis runs in a child process:
``python -m focuscrawl.studio.crawl_analyses ANALYSIS OPTION FOLDER...``.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl import CrawlFolder
from focuscrawl.errors import UserError
from focuscrawl.foundation.processes import start_python
from focuscrawl.report.comparison import (
    PARTS,
    SHOWN,
    compare_two_crawls,
    harvest_curve,
    load_part_pages,
)
from focuscrawl.report.html_report import crawl_tables
from focuscrawl.report.measures import load_pages
from focuscrawl.report.prestige import Distillation
from focuscrawl.report.status import open_store
from focuscrawl.report.summary import Summary
from focuscrawl.report.url_tables import map_hosts, open_sorted_copy, write_sorted_copy
from focuscrawl.studio.jobs import PROCESS_ENVIRONMENT

if TYPE_CHECKING:
    from focuscrawl.foundation.databases import Database
    from focuscrawl.store import CrawlStore


_MAX_OPEN = 16  # crawls
#: a result is renewed when its age is this multiple of the time it took
_MIN_AGE_FACTOR = 30
_FIRST_COPY_TIMEOUT = 0.15  # seconds that a request waits for a sorted copy
_MAX_RESULTS = 32
_N_BEST = 100  # of each list of hubs
_NICENESS = 10  # of child processes: crawls have priority


@dataclass
class SortedCopy:
    """A sorted copy of the URLs in a crawl's store, for tables in the studio."""

    path: Path
    started_at: datetime
    stamp: tuple[int, ...]
    took: float  # seconds


@dataclass
class _OpenCrawl:
    """A crawl whose store was checked."""

    store: CrawlStore
    file: tuple[int, int]
    lock: threading.Lock = field(default_factory=threading.Lock)
    copy: SortedCopy | None = None
    sorting: threading.Event | None = None
    error: Exception | None = None


class OpenCrawls:
    """Opens the stores of crawls, and keeps sorted copies of the stores in a temporary folder."""

    def __init__(self) -> None:
        self._crawls: OrderedDict[Path, _OpenCrawl] = OrderedDict()
        self._lock = threading.Lock()
        self._folder = Path(tempfile.mkdtemp(prefix="focuscrawl-studio-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._n_copies = 0

    @contextmanager
    def store(self, path: Path) -> Iterator[CrawlStore]:
        """Open the store of the crawl in `path`; raise `UserError` if the store cannot be read."""
        with self._forget_if_damaged(path), closing(self._crawl(path).store.reopen()) as store:
            yield store

    @contextmanager
    def sorted(self, path: Path) -> Iterator[tuple[Database, SortedCopy] | None]:
        """Open the sorted copy of the crawl in `path`; None while the first copy is created.

        An outdated sorted copy is replaced in the background.
        """
        with self._forget_if_damaged(path):
            crawl = self._crawl(path)
            copy = self._copy(crawl, path)
            if copy is None:
                yield None
                return
            with open_sorted_copy(crawl.store, copy.path) as connection:
                yield connection, copy

    @contextmanager
    def _forget_if_damaged(self, path: Path) -> Iterator[None]:
        """Raise `UserError` if a checked store is damaged now, and check it again next time."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            with self._lock:
                self._crawls.pop(path, None)
            raise UserError(f"the store in {path} cannot be read ({error})") from None

    def _crawl(self, path: Path) -> _OpenCrawl:
        about = CrawlFolder(path).store_path.stat()
        file = about.st_dev, about.st_ino
        with self._lock:
            crawl = self._crawls.get(path)
            if crawl is not None and crawl.file == file:
                self._crawls.move_to_end(path)
                return crawl
        store = open_store(path)
        store.close()  # reopened for each request
        crawl = _OpenCrawl(store, file)
        with self._lock:
            self._crawls[path] = crawl
            while len(self._crawls) > _MAX_OPEN:
                _, oldest = self._crawls.popitem(last=False)
                if oldest.copy is not None:
                    oldest.copy.path.unlink(missing_ok=True)
        return crawl

    def _copy(self, crawl: _OpenCrawl, path: Path) -> SortedCopy | None:
        """Return the latest copy; wait a moment for the first, and replace an outdated copy."""
        stamp = store_stamp(path)
        with crawl.lock:
            copy = crawl.copy
            if crawl.error is not None:
                error, crawl.error = crawl.error, None
                raise error
            if crawl.sorting is None and _is_stale(copy, stamp):
                crawl.sorting = threading.Event()
                arguments = (crawl, stamp, crawl.sorting)
                threading.Thread(target=self._sort, args=arguments, daemon=True).start()
            sorting = crawl.sorting
        if sorting is not None and (copy is None or copy.took < _FIRST_COPY_TIMEOUT):
            sorting.wait(_FIRST_COPY_TIMEOUT)
            with crawl.lock:
                return crawl.copy
        return copy

    def _sort(self, crawl: _OpenCrawl, stamp: tuple[int, ...], done: threading.Event) -> None:
        with self._lock:
            self._n_copies += 1
            path = self._folder / f"{self._n_copies}.db"
        started, now = time.monotonic(), datetime.now(UTC)
        copy, failure = None, None
        try:
            write_sorted_copy(crawl.store, path)
            copy = SortedCopy(path, now, stamp, time.monotonic() - started)
        except Exception as error:
            path.unlink(missing_ok=True)
            failure = error
        with crawl.lock:
            if copy is not None:
                if crawl.copy is not None:
                    crawl.copy.path.unlink(missing_ok=True)  # its readers have it open
                crawl.copy = copy
            crawl.error, crawl.sorting = failure, None
        done.set()


def store_stamp(path: Path) -> tuple[int, ...]:
    """Return a value that changes whenever the store of the crawl in `path` changes."""
    store = CrawlFolder(path).store_path
    found = list[int]()
    for file in (store, store.with_name(f"{store.name}-wal")):
        try:
            about = file.stat()
        except FileNotFoundError:
            continue
        found += [about.st_ino, about.st_size, about.st_mtime_ns]
    return tuple(found)


def _is_stale(copy: SortedCopy | None, stamp: tuple[int, ...]) -> bool:
    if copy is None:
        return True
    age = (datetime.now(UTC) - copy.started_at).total_seconds()
    return copy.stamp != stamp and age > _MIN_AGE_FACTOR * copy.took


@dataclass(frozen=True)
class AnalysisResult:
    """Latest result of an analysis of a crawl, and whether the analysis is running."""

    value: Any = None  # for JSON; None: not computed yet, or failed
    error: str | None = None  # why the analysis failed, a sentence
    as_of: str | None = None  # start of the analysis, ISO 8601, UTC
    running: bool = False  # whether a newer result is being computed


@dataclass
class _CachedResult:
    known: AnalysisResult
    stamp: object = None
    ended: float = 0.0
    took: float = 0.0


class AnalysisRunner:
    """Runs analyses of crawls in child processes, one process at a time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._entries: dict[tuple[str, ...], _CachedResult] = {}
        self._lock = threading.Lock()
        self._process_lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        atexit.register(self._close)

    def get(self, what: str, *crawls: Path, option: str = "") -> AnalysisResult:
        """Return the latest result of an analysis; repeat an outdated analysis in a thread."""
        key = (what, option, *map(str, crawls))
        stamp = [store_stamp(path) for path in crawls]
        with self._lock:
            entry = self._entries.setdefault(key, _CachedResult(AnalysisResult()))
            is_stale = (
                entry.stamp != stamp
                and time.monotonic() - entry.ended > _MIN_AGE_FACTOR * entry.took
            )
            if is_stale and not entry.known.running:
                entry.known = replace(entry.known, running=True)
                threading.Thread(target=self._compute, args=(key, stamp), daemon=True).start()
            while len(self._entries) > _MAX_RESULTS:
                del self._entries[next(iter(self._entries))]
            return entry.known

    def _compute(self, key: tuple[str, ...], stamp: object) -> None:
        with self._process_lock:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            started = time.monotonic()
            command = ["-m", "focuscrawl.studio.crawl_analyses", *key]
            with self._lock:
                if self._closed:
                    return
                try:
                    process = start_python(
                        command,
                        variables=PROCESS_ENVIRONMENT,
                        cwd=self._root,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                    )
                except OSError as error:
                    self._entries[key] = _CachedResult(
                        AnalysisResult(None, f"The analysis could not start: {error}", now)
                    )
                    return
                self._process = process
            output, _ = process.communicate()
            self._process = None
        try:
            found = json.loads(output)
            known = AnalysisResult(found.get("value"), found.get("error"), now)
        except ValueError:
            known = AnalysisResult(
                None, "The analysis failed: see the studio's messages in the terminal.", now
            )
            stamp = None  # try again even if the crawl does not change
        with self._lock:
            ended = time.monotonic()
            self._entries[key] = _CachedResult(known, stamp, ended, ended - started)

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.terminate()


class ComparedCrawls:
    """Compares pairs of crawls, and keeps the lists of compared pages in temporary files."""

    def __init__(self, background: AnalysisRunner) -> None:
        self._background = background
        self._folder = Path(tempfile.mkdtemp(prefix="focuscrawl-studio-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def get(self, a: Path, b: Path) -> AnalysisResult:
        """Return the latest comparison of two crawls by `compare_two_crawls`."""
        file = self._result_file(a, b)
        found = self._background.get("compare", a, b, option=str(file))
        kept = sorted(self._folder.glob("*.db"), key=lambda path: path.stat().st_mtime)
        for old in kept[:-_MAX_RESULTS]:
            if old != file:
                old.unlink(missing_ok=True)
        return found

    def pages(self, a: Path, b: Path, part: str, start: str) -> dict[str, Any]:
        """Return rows of one list of compared pages, and the number of the next row."""
        if part not in PARTS or not (start.isascii() and start.isdecimal() and len(start) < 10):
            raise UserError(
                f"part must be one of {', '.join(PARTS)}, and start must be a row number"
            )
        file = self._result_file(a, b)
        if not file.exists():
            raise UserError("these crawls have not been compared yet: request /compare first")
        rows = load_part_pages(file, part, int(start), SHOWN + 1)
        more = len(rows) > SHOWN
        return {"rows": rows[:SHOWN], "next": int(start) + SHOWN if more else None}

    def _result_file(self, a: Path, b: Path) -> Path:
        name = sha256(f"{a}\n{b}".encode()).hexdigest()
        return self._folder / f"{name}.db"


# -- child process -------------------------------------------------------------------------


def _hubs(store: CrawlStore, *, option: str) -> dict[str, Any]:
    found = Distillation.of(store, option or None)

    def listed(score: str) -> list[dict[str, Any]]:
        rows = found.best(score, _N_BEST).rename(columns={score: "best"})
        rows = rows.astype(object).where(rows.notna(), None)
        return [{str(name): row[name] for name in row} for row in rows.to_dict("records")]

    sites = found.popular.head(_N_BEST).reset_index().to_dict("records")
    return {
        "facts": found.facts,
        "between_sites": found.between_sites,
        "hubs": listed("hub"),
        "authorities": listed("authority"),
        "sites": sites,
    }


def _hosts(store: CrawlStore, *, option: str) -> dict[str, Any]:
    del option
    found = map_hosts(store)
    return {"hosts": [each._asdict() for each in found.hosts], "links": found.links}


def _compare(a: CrawlStore, b: CrawlStore, *, option: str) -> dict[str, Any]:
    return compare_two_crawls(a, b, Path(option))


def _report(store: CrawlStore, *, option: str) -> dict[str, Any]:
    del option
    pages = load_pages(store)
    tables = crawl_tables(store, Summary.of(store), pages)
    return {**_to_json(tables), "curve": harvest_curve(pages)}


def _to_json(value: Any) -> Any:
    """Return a value whose rows (named tuples, dataclasses) are dicts, and NaN is None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _to_json(getattr(value, each.name)) for each in fields(value)}
    if hasattr(value, "_asdict"):
        return _to_json(value._asdict())
    if isinstance(value, dict):
        return {str(name): _to_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return None if isinstance(value, float) and math.isnan(value) else value


ANALYSES: dict[str, Callable[..., dict[str, Any]]] = {
    "hubs": _hubs,
    "hosts": _hosts,
    "compare": _compare,
    "report": _report,
}


def main(what: str, option: str, *folders: str) -> None:
    """Run an analysis of crawls; print ``{"value": result}`` or ``{"error": sentence}``."""
    os.nice(_NICENESS)
    found: dict[str, Any]
    try:
        with ExitStack() as opened:
            stores = [opened.enter_context(closing(open_store(Path(each)))) for each in folders]
            found = {"value": ANALYSES[what](*stores, option=option)}
    except UserError as error:
        found = {"error": str(error)}
    with suppress(BrokenPipeError):  # the studio has stopped
        # converts NumPy scalars
        sys.stdout.write(json.dumps(found, default=lambda number: number.item()))
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
