"""Crawl the hosts of `tests/server/bad`, and measure what it took."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .running import BICYCLES, QUICK, ROOT, Kept, command, environment, start
from .serving import serving

CRITIC = BICYCLES | {"strategy": "breadth-first"}
#: politeness that takes no time
SETTINGS: dict[str, object] = QUICK | {
    "DOWNLOAD_TIMEOUT": 60,
    "RETRY_TIMES": 1,
    "FOCUSCRAWL_BACKOFF": 0.1,
    "FOCUSCRAWL_BACKOFF_MAX": 5,
}
_LONG = 600  # seconds after which a crawl hangs
_EVERY = 0.02  # seconds between two looks at its memory


@dataclass(frozen=True)
class BadWeb:
    """The servers: `origins` by case, the certificate authority, and what was asked."""

    origins: dict[str, str]
    authority: str
    log: Path

    def requests(self) -> list[dict[str, Any]]:
        """Return the requests that were answered, in the order they ended."""
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]

    def paths(self, case: str) -> list[str]:
        """Return what one host was asked for, in the order of asking."""
        asked = [entry for entry in self.requests() if entry["case"] == case]
        return [entry["path"] for entry in sorted(asked, key=lambda entry: float(entry["began"]))]

    def seeds(self, *cases: str) -> str:
        """Return the front pages of some hosts."""
        return ",".join(f"{self.origins[case]}/" for case in cases)

    def short(self, url: str) -> str:
        """Return ``case/path``."""
        for case, origin in self.origins.items():
            if url.startswith(f"{origin}/"):
                return f"{case}{url[len(origin) :]}"
        return url


@dataclass(frozen=True)
class Measured:
    """A crawl that ended: `peak` is the most memory it held at once, in bytes, if weighed."""

    returncode: int
    stderr: str
    kept: Kept
    peak: int
    seconds: float

    def pages(self, web: BadWeb) -> dict[str, dict[str, Any]]:
        """Return the rows of the view `pages` by ``case/path``."""
        return {web.short(row["url"]): row for row in self.kept.rows("SELECT * FROM pages")}

    def summary(self, name: str) -> str:
        """Return a line of the summary."""
        lines = [line for line in self.stderr.splitlines() if line.startswith(f"{name}  ")]
        return lines[-1].removeprefix(name).strip()


@contextmanager
def listening(log: Path) -> Iterator[BadWeb]:
    """Serve the bad web from a process of its own."""
    with serving("server.bad", log) as said:
        yield BadWeb(**said, log=log)


def explore(folder: Path, seeds: str, /, *, weighed: object = True, **more: object) -> Measured:
    """Crawl to the end; `more` are arguments, in small letters, and settings, in capitals.

    Parameters
    ----------
    weighed : look at its memory, which begins with what it imports itself
    """
    given = {**SETTINGS, **CRITIC, "budget": 1000, **more, "seeds": seeds}
    if weighed:
        return measured(command(folder, **given), folder)
    began = time.monotonic()
    with start(folder, **given) as running:
        run = running.end()
    return Measured(run.returncode, run.stderr, run.kept, sys.maxsize, time.monotonic() - began)


def measured(line: Sequence[str], folder: Path) -> Measured:
    """Run a crawl and look at its memory until it ends."""
    began, peak = time.monotonic(), 0
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            line,
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            text=True,
        )
        with process:
            try:
                while process.poll() is None:
                    peak = max(peak, _peak(process.pid))
                    assert time.monotonic() < began + _LONG, "the crawl hangs"
                    time.sleep(_EVERY)
            finally:
                process.kill()
        said.seek(0)
        text = said.read()
    return Measured(process.returncode, text, Kept(folder), peak, time.monotonic() - began)


def _peak(pid: int) -> int:
    """Return the most memory a process has held so far, in bytes; 0 if it has gone.

    What `wait4` reports of a child begins with the memory of the parent it was forked from.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return int(fields.get("VmHWM", "0 kB").split()[0]) * 1024


def good_pages(run: Measured, web: BadWeb) -> int:
    """Return how many pages of the good site were fetched; it has 9."""
    pages = run.pages(web)
    return sum(page["status"] == 200 for name, page in pages.items() if name.startswith("good/"))
