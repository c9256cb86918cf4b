"""Sums over whole crawls, made by a process of its own, and kept until the crawl has gone on."""

from __future__ import annotations

import atexit
import json
import subprocess
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from focuscrawl.foundation.python_processes import start_python
from focuscrawl.studio.exploring.open_crawls import stamp_of
from focuscrawl.studio.jobs import OWN_SETTINGS

if TYPE_CHECKING:
    from pathlib import Path

_SHARE = 30  # times as old as it took, before it is made anew: 3 % of the time
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
    """Has `focuscrawl.studio.exploring.compute` make sums, one at a time; for any thread.

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
        what : one of `focuscrawl.studio.exploring.compute.SUMS`
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
            command = ["-m", "focuscrawl.studio.exploring.compute", *key]
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
