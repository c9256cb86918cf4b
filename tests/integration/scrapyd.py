"""A real Scrapyd on loopback, in folders of its own and without focuscrawl installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin
from urllib.request import urlopen

from .ports import await_listener, free_port
from .running import ROOT

PROJECT = "focuscrawl"
_PARTS = ("setup.py", "pyproject.toml", "README.md", "LICENSE", "focuscrawl", "models")
_LONG = 600  # seconds after which something hangs


@dataclass(frozen=True)
class Scrapyd:
    """The server: where it listens, and its folder."""

    url: str
    folder: Path

    def ask(self, method: str, **parameters: object) -> dict[str, Any]:
        """Call one of its web services; what changes something is posted."""
        changes = method in {"schedule", "cancel"}
        query = urlencode(parameters)
        url = urljoin(self.url, f"{method}.json")
        with urlopen(
            url if changes else f"{url}?{query}", query.encode() if changes else None
        ) as answer:
            said: dict[str, Any] = json.load(answer)
        assert said["status"] == "ok", said
        return said

    def schedule(self, **arguments: object) -> str:
        """Have a crawl started; return the job."""
        said = self.ask("schedule", project=PROJECT, spider="focused", **arguments)
        return str(said["jobid"])

    def finished(self, job: str) -> dict[str, Any]:
        """Wait for the end of a job; return its entry in the job list."""
        until = time.monotonic() + _LONG
        while time.monotonic() < until:
            for entry in self.ask("listjobs", project=PROJECT)["finished"]:
                if entry["id"] == job:
                    return dict(entry)
            time.sleep(0.3)
        raise TimeoutError(job)

    def read(self, path: str) -> str:
        """Return a log or a file of items."""
        with urlopen(urljoin(self.url, path)) as answer:
            return str(answer.read().decode())

    def eggs(self) -> dict[str, bytes]:
        """Return the files where eggs are kept."""
        kept = self.folder / "eggs"
        return {str(f.relative_to(kept)): f.read_bytes() for f in kept.rglob("*") if f.is_file()}


@contextmanager
def serving(folder: Path) -> Iterator[Scrapyd]:
    """Start Scrapyd, and end it; what an earlier one has left in `folder` is its own."""
    folder.mkdir(exist_ok=True)
    shutil.copy(ROOT / "deploy" / "scrapyd_jobs.py", folder)
    port = free_port()
    config = (ROOT / "deploy" / "scrapyd.conf").read_text(encoding="utf-8")
    config = _replaced(r"^http_port .*$", f"http_port = {port}", config)
    (folder / "scrapyd.conf").write_text(f"{config}poll_interval = 0.2\n", encoding="utf-8")
    log = folder / "scrapyd.log"
    with (
        log.open("w") as out,
        subprocess.Popen(
            [_python(folder / "venv"), "-m", "scrapyd"],
            cwd=folder,
            env=_environment() | {"PYTHONPATH": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            _await_start(process, log)
            await_listener(port)
            yield Scrapyd(f"http://127.0.0.1:{port}/", folder)
        finally:
            process.terminate()
            process.wait(_LONG)


@contextmanager
def with_password(folder: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Start Scrapyd as its image does, but on loopback."""
    folder.mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with subprocess.Popen(
        [ROOT / "deploy" / "scrapyd-with-password"],
        cwd=folder,
        env=_environment()
        | {
            "PATH": path,
            "SCRAPYD_BIND_ADDRESS": "127.0.0.1",
        }
        | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def copy_project(project: Path) -> None:
    """Copy what the egg is built from."""
    project.mkdir()
    for name in _PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, project / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(ROOT / name, project)


def deploy(server: Scrapyd, project: Path) -> subprocess.CompletedProcess[str]:
    """Build the egg of a copy of this project and upload it, with scrapyd-deploy."""
    target = (ROOT / "scrapy.cfg").read_text(encoding="utf-8")
    target = _replaced(r"^url = .*$", f"url = {server.url}", target)
    (project / "scrapy.cfg").write_text(target, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "scrapyd_client.deploy", "--version", "1"],
        cwd=project,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=_LONG,
        check=False,
    )


def _replaced(pattern: str, line: str, text: str) -> str:
    text, places = re.subn(pattern, line, text, flags=re.MULTILINE)
    assert places == 1, pattern
    return text


def _python(folder: Path) -> str:
    """Make an environment of what the server's lock names, and of nothing else that is here."""
    venv.create(folder)
    (site,) = (folder / "lib").glob("python*/site-packages")
    lock = (ROOT / "locks" / "server.txt").read_text(encoding="utf-8")
    for name in re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE):
        with suppress(PackageNotFoundError):  # it is for other platforms
            package = distribution(name)
            for top in {file.parts[0] for file in package.files or ()} - {".."}:
                if not (site / top).is_symlink():
                    (site / top).symlink_to(str(package.locate_file(top)))
    return str(folder / "bin" / "python")


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def _await_start(process: subprocess.Popen[bytes], log: Path) -> None:
    while "Site starting on" not in log.read_text(encoding="utf-8"):
        assert process.poll() is None, log.read_text(encoding="utf-8")
        time.sleep(0.05)
