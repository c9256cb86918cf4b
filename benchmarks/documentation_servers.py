"""Ten servers of documentation packages of Debian, each on its own loopback address.

`unpack` downloads the packages with ``apt-get download`` (on Debian and its derivatives) without
installing them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import NamedTuple
from urllib.parse import urlsplit

import click

from focuscrawl.taxonomy import Label
from focuscrawl.webs.web_protocol import Answer

DATABASES = "/databases"
EXAMPLES = 40  # pages of each server that the critic is trained on
_ELSEWHERE = re.compile(rb"""href\s*=\s*["']?(https?:)?//[^"'\s>]*["']?""", re.IGNORECASE)


class Docs(NamedTuple):
    """A documentation package: folder of its pages, and parts to leave out."""

    package: str
    folder: str
    topic: str
    start: str = "index.html"
    without: tuple[str, ...] = ()


SITES = (
    Docs("postgresql-doc-15", "postgresql-doc-15/html", DATABASES),
    Docs(
        "sqlite3-doc",
        "sqlite3",
        DATABASES,
        without=("c3ref", "releaselog"),
    ),
    Docs("python-sqlalchemy-doc", "python-sqlalchemy-doc/html", DATABASES),
    Docs("python3.11-doc", "python3.11/html", "/python"),
    Docs("python-django-doc", "python-django-doc/html", "/django"),
    Docs("git-doc", "git-doc", "/git"),
    Docs("apache2-doc", "apache2-doc/manual/en", "/apache"),
    Docs("cmake-doc", "cmake-data/html", "/cmake"),
    Docs("erlang-doc", "erlang-doc", "/erlang", "doc/index.html"),
    Docs("octave-doc", "octave/octave.html", "/octave"),
)


class DocServer(ThreadingHTTPServer):
    """Serves one package on its own address."""

    daemon_threads = True

    def __init__(self, number: int, folder: Path) -> None:
        self.folder = folder
        address = f"127.0.0.{11 + number}"
        super().__init__((address, 0), partial(Pages, directory=str(folder)))
        self.origin = f"http://{address}:{self.server_port}/"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_: object) -> None:
        """Ignore clients that hang up."""


class Pages(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


class FilesWeb:
    """The pages of all servers, for training the critic."""

    name, fingerprint = "documentation", "files"

    def __init__(self, servers: Sequence[DocServer], sites: Sequence[Docs]) -> None:
        self.files: dict[str, Path] = {}
        self.topics: dict[str, str] = {}
        for server, site in zip(servers, sites, strict=True):
            for path in sorted(server.folder.rglob("*.html")):
                url = server.origin + path.relative_to(server.folder).as_posix()
                self.files[url], self.topics[url] = path, site.topic

    def urls(self) -> Iterator[str]:
        """Iterate over all pages."""
        return iter(self.files)

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Map URLs to themselves."""
        return [url if url in self.files else None for url in urls]

    def fetch(self, url: str) -> Answer:
        """Return a page."""
        body = self.files[url].read_bytes()
        return Answer(url, 200, [("content-type", "text/html")], body)

    def labels(self, draw: int) -> list[Label]:
        """Draw examples of every server."""
        rng, by_host = Random(draw), Counter[str]()
        found = []
        for url in rng.sample(sorted(self.files), len(self.files)):
            host = urlsplit(url).netloc
            by_host[host] += 1
            if by_host[host] <= EXAMPLES:
                found.append(Label(url, self.topics[url], "train"))
        return sorted(found)


def unpack(folder: Path) -> list[Path]:
    """Download and unpack missing packages; return the folders of the pages."""
    found = []
    for site in SITES:
        root = folder / site.package
        if not root.exists():
            click.echo(f"fetching {site.package}", err=True)
            with tempfile.TemporaryDirectory(dir=folder) as there:
                subprocess.run(
                    ["apt-get", "download", site.package],
                    cwd=there,
                    check=True,
                    stdout=subprocess.DEVNULL,
                )
                (package,) = Path(there).glob("*.deb")
                files = Path(there) / "files"
                subprocess.run(["dpkg-deb", "-x", str(package), str(files)], check=True)
                _prepare(files / "usr/share/doc" / site.folder, site.without)
                files.rename(root)
        found.append(root / "usr/share/doc" / site.folder)
    return found


def _prepare(pages: Path, without: Sequence[str]) -> None:
    """Remove some folders, and links to other servers, so that no other server is crawled."""
    for name in without:
        shutil.rmtree(pages / name)
    for path in pages.rglob("*.html"):
        if not path.is_symlink():
            path.write_bytes(_ELSEWHERE.sub(b"", path.read_bytes()))
