"""A PostgreSQL server of the tests' own, on a loopback port, in a temporary directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from .ports import free_port

_USER = "postgres"
PASSWORD = "not-to-be-seen"
_LONG = 300  # seconds after which a server hangs


def binaries() -> Path | None:
    """Return the folder of the server's programs; None where it is not installed."""
    found = [*Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if not found and (elsewhere := shutil.which("initdb")):
        found = [Path(elsewhere).resolve()]
    return max(found).parent if found else None


class PostgresServer:
    """Started with the ``with`` block, gone with all it kept at its end.

    PostgreSQL refuses to run as root: root runs it as the user that Debian's package makes.
    """

    def __init__(self) -> None:
        bin_folder = binaries()
        assert bin_folder is not None
        self._bin = bin_folder
        self._folder = Path(tempfile.mkdtemp(prefix="focuscrawl-postgres-"))
        if os.geteuid() == 0:
            shutil.chown(self._folder, _USER, _USER)
        self.port = free_port()  # to have it again after a restart

    def __enter__(self) -> Self:
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        if os.geteuid() == 0:
            shutil.chown(secret, _USER, _USER)
        options = ["-A", "scram-sha-256", "--pwfile", str(secret), "--no-sync", "-E", "UTF8"]
        self._run("initdb", "-D", str(self._data), "-U", _USER, *options)
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write(
                f"listen_addresses = '127.0.0.1'\nport = {self.port}\n"
                f"unix_socket_directories = '{self._folder}'\n"
            )
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    def url(self, crawl: str = "", *, user: str = _USER, password: str = PASSWORD) -> str:
        """Return the URL of a crawl in the database ``postgres``, password included."""
        query = f"?crawl={crawl}" if crawl else ""
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/postgres{query}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._control("start", "-l", str(self._folder / "log"))

    def stop(self) -> None:
        """Break off all connections, and stop."""
        self._control("stop", "-m", "fast")

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    @property
    def pid(self) -> int:
        """Number of the server's first process."""
        return int((self._data / "postmaster.pid").read_text().splitlines()[0])

    def processor(self) -> float:
        """Return the seconds of processor that it has taken."""
        postmaster = psutil.Process(self.pid)
        spent = sum(postmaster.cpu_times()[:4])  # of its own, and of connections that have ended
        for each in postmaster.children():
            with suppress(psutil.NoSuchProcess):
                spent += sum(each.cpu_times()[:2])
        return float(spent)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _control(self, action: str, *options: str) -> None:
        # a minute, which is what it waits by itself, is short for a disk that all write to
        self._run("pg_ctl", action, "-D", str(self._data), "-w", "-t", str(_LONG), *options)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._bin / program), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", _USER, "--", *command]
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, cwd=self._folder, timeout=2 * _LONG
        )
