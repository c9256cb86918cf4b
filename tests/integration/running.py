"""Run ``scrapy crawl focused`` as a user does, and read what it leaves."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from focuscrawl.settings import ITEM_PIPELINES

from .warm import WarmProcess

ROOT = Path(__file__).resolve().parents[2]
TOPIC = "/Sports/Cycling"
#: a crawl of the synthetic web, without a budget
DEMO = {"web": "demo", "topic": TOPIC, "seeds": "models/demo/seeds.csv"}
#: a crawl of the test servers, judged by their critic
BICYCLES = {"topic": "bicycle", "critic": "server.critic:judge", "strategy": "best-first"}
#: settings for servers on this machine that need no politeness
QUICK = {
    "FOCUSCRAWL_PRIVATE_ADDRESSES": "127.0.0.0/8",
    "DOWNLOAD_DELAY": 0,
    "AUTOTHROTTLE_ENABLED": 0,
}
_AHEAD = 20  # pages that a crawl may be further than it is waited for
# seconds after which a process hangs
_LONG = 1200 if os.environ.get("FOCUSCRAWL_ENDURANCE") else 600


class Kept:
    """What is in the folder of a crawl."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Read the store, as any program might while the crawl runs."""
        return self._read(sql, None)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Read the store, rows as dictionaries."""
        return [dict(row) for row in self._read(sql, sqlite3.Row)]

    def _read(self, sql: str, factory: Any) -> list[Any]:
        uri = f"file:{self.folder / 'crawl.db'}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=300)) as connection:
            connection.row_factory = factory
            return connection.execute(sql).fetchall()

    @property
    def order(self) -> list[tuple[int, str]]:
        """(seq, URL) of every fetch."""
        return self.query("SELECT seq, url FROM pages ORDER BY seq")

    @property
    def urls(self) -> list[str]:
        """URLs in the order of their fetches."""
        return [url for _, url in self.order]

    @property
    def stop_reasons(self) -> list[str]:
        """Why the crawl ended, each time."""
        sql = "SELECT detail FROM events WHERE kind = 'stop' ORDER BY id"
        return [detail for (detail,) in self.query(sql)]


@dataclass(frozen=True)
class Run:
    """A process that ended."""

    returncode: int
    stderr: str
    kept: Kept


def command(crawl_dir: Path | None, *options: str, **given: object) -> list[str]:
    """Return the command line; see `words`."""
    return [sys.executable, "-m", "scrapy", *words(crawl_dir, *options, **given)]


def words(crawl_dir: Path | None, *options: str, **given: object) -> list[str]:
    """Return what follows ``scrapy`` in the command line.

    Parameters
    ----------
    given : arguments of the spider, in small letters, and settings, in capitals
    """
    if crawl_dir is not None:
        given = {"crawl_dir": crawl_dir, **given}
    return ["crawl", "focused", *as_options(given), *options]


def as_options(given: Mapping[str, object]) -> list[str]:
    """Return arguments (``-a``) and settings (``-s``, in capitals) as they are typed."""
    return [
        part
        for name, value in given.items()
        for part in ("-s" if name.isupper() else "-a", f"{name}={value}")
    ]


def environment() -> dict[str, str]:
    """Return the environment of a crawl: it finds the test servers' critic."""
    return os.environ | {"PYTHONPATH": str(ROOT / "tests")}


def crawl(
    crawl_dir: Path, *options: str, code: object = 0, fresh: object = False, **given: object
) -> Run:
    """Crawl to the end, which has to be an exit code; `fresh`, `given`: see `start`, `words`."""
    with start(crawl_dir, *options, fresh=fresh, **given) as running:
        run = running.end()
    assert run.returncode == code, run.stderr
    return run


def refused(crawl_dir: Path, *options: str, **given: object) -> str:
    """Start a crawl that the user has to put right; return the one line that says so."""
    (line,) = crawl(crawl_dir, *options, code=2, **given).stderr.splitlines()
    assert line.startswith("scrapy crawl focused: ")
    return line


class Running:
    """A crawl under way; killed at the end of the ``with`` block if it still runs."""

    def __init__(self, process: WarmProcess | subprocess.Popen[str], kept: Kept) -> None:
        self._process = process
        self._kept = kept
        self._said: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        with self._process:
            self._process.kill()

    def wait_for(self, pages: int) -> None:
        """Wait until the store holds so many pages, or the crawl has ended."""
        while self._process.poll() is None and _stored(self._kept) < pages:
            time.sleep(0.002)

    def wait_until_said(self, words: str) -> None:
        """Wait until a line of its log holds `words`, or it has ended."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said.append(line)
            if words in line:
                break

    def signal(self, signal: int) -> None:
        """Send `signal`."""
        self._process.send_signal(signal)

    def go_on(self) -> None:
        """Let it be further than `start_up_to` said."""
        _go_on(self._kept.folder).touch()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def stop(self, signal: int) -> Run:
        """Send `signal`, and wait for the end."""
        self.signal(signal)
        self.go_on()  # handlers of signals come before what else a process does
        return self.end()

    def end(self) -> Run:
        """Wait for the end."""
        _, stderr = self._process.communicate(timeout=_LONG)
        return Run(self._process.wait(), "".join(self._said) + stderr, self._kept)


def start(crawl_dir: Path, *options: str, fresh: object = False, **given: object) -> Running:
    """Begin to crawl.

    Parameters
    ----------
    fresh : in a process started anew, with hashes of its own; see `integration.warm`
    given : see `words`
    """
    with Path(os.devnull).open("wb") as nowhere:
        if fresh:
            process: WarmProcess | subprocess.Popen[str] = subprocess.Popen(
                command(crawl_dir, *options, **given),
                cwd=ROOT,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=nowhere,
                stderr=subprocess.PIPE,
                text=True,
            )
        else:
            line = words(crawl_dir, *options, **given)
            process = WarmProcess(line, cwd=ROOT, env=environment(), stdout=nowhere.fileno())
    return Running(process, Kept(crawl_dir))


def start_up_to(pages: int, crawl_dir: Path, *options: str, **given: object) -> Running:
    """Begin to crawl, and have it wait at so many pages until it is told to go on, or to end."""
    left = pages - max(0, _stored(Kept(crawl_dir)))
    return start(crawl_dir, *options, **given, **waiting(_go_on(crawl_dir), left))


def waiting(go_on: Path, pages: int) -> dict[str, object]:
    """Return the settings of a process that waits after so many pages until `go_on` is there."""
    go_on.unlink(missing_ok=True)
    pipelines = {"server.pipelines.Waiting": 50, **ITEM_PIPELINES}
    return {
        "ITEM_PIPELINES": json.dumps(pipelines),
        "TEST_PAGES": pages,
        "TEST_GO_ON": go_on,
    }


def _go_on(crawl_dir: Path) -> Path:
    return crawl_dir.with_name(f"{crawl_dir.name}.go-on")


def crawl_until(crawl_dir: Path, pages: int, signal: int, *options: str, **given: object) -> Run:
    """Crawl, and send `signal` as soon as the store holds so many pages, and not many more."""
    with start_up_to(pages + _AHEAD, crawl_dir, *options, **given) as running:
        running.wait_for(pages)
        return running.stop(signal)


def _stored(kept: Kept) -> int:
    try:
        return int(kept.query("SELECT count(*) FROM page")[0][0])
    except sqlite3.OperationalError:  # the store is not there yet
        return -1
