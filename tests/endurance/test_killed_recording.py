"""A live crawl that records what it fetches, killed at random moments."""

from __future__ import annotations

import random
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from integration.running import Run, crawl, start

from focuscrawl.webs import RecordedWeb

from .lasting import LONG, assert_sound

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KILLS, PAGES = (30, 1200) if LONG else (3, 120)
_LATENCY = 0.01  # seconds that the server takes for a page
_FURTHER = 30  # pages that a crawl may have fetched more when it is killed


class _Page(BaseHTTPRequestHandler):
    """Page n links to pages 2 n + 1 and 2 n + 2; /robots.txt and all else is missing."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        name = self.path.removeprefix("/page-")
        time.sleep(_LATENCY)
        number = int(name) if name.isdecimal() else -1
        if number >= 0:
            self.server.await_page(number)
        links = "".join(f"<p><a href=/page-{2 * number + i}>more</a>" for i in (1, 2))
        body = f"<title>{number}</title>bicycle {'and ' * (number % 50)}{links}".encode()
        self.send_response(200 if number >= 0 else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    """Has a number of pages; whoever asks for more of them waits until there are."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self._pages = 0
        self._asked: set[int] = set()
        self._more = threading.Condition()

    def await_page(self, number: int) -> None:
        with self._more:
            self._more.wait_for(lambda: number in self._asked or len(self._asked) < self._pages)
            self._asked.add(number)

    def have(self, pages: int) -> None:
        with self._more:
            self._pages = pages
            self._more.notify_all()

    @property
    def site(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/page-"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients are killed here."""


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_every_page_that_is_known_is_recorded(tmp_path: Path, server: _Server) -> None:
    settings = (
        "FOCUSCRAWL_WARC=1",
        "FOCUSCRAWL_PRIVATE_ADDRESSES=127.0.0.0/8",
        "DOWNLOAD_DELAY=0",
    )
    options = [part for each in (*settings, "AUTOTHROTTLE_ENABLED=0") for part in ("-s", each)]
    arguments: dict[str, object] = {
        "topic": "bicycle",
        "critic": "server.critic:judge",
        "strategy": "best-first",
        "seeds": f"{server.site}0",
        "budget": PAGES,
    }
    rng, folder = random.Random(0), tmp_path / "crawl"
    killed = 0
    for moment in sorted(rng.sample(range(5, PAGES * 3 // 4), KILLS)):
        server.have(moment + _FURTHER)
        with start(folder, *options, **arguments) as running:
            running.wait_for(moment)
            time.sleep(rng.uniform(0.0, 0.1))
            run = running.stop(signal.SIGKILL)
        killed += run.returncode == -signal.SIGKILL
        assert_recorded(run)
    assert killed == KILLS
    server.have(2 * PAGES)
    done = crawl(folder, *options, **arguments)
    assert done.returncode == 0, done.stderr
    assert assert_recorded(done) == PAGES


def assert_recorded(run: Run) -> int:
    """Check that the recording has every page of the store; return how many there are."""
    pages = assert_sound(run.kept)
    web = RecordedWeb(run.kept.folder / "pages.warc.gz")
    for url, status, size in run.kept.query("SELECT url, status, bytes FROM pages"):
        answer = web.fetch(url)
        assert answer is not None, url
        assert (answer.status, len(answer.body)) == (status, size)
    return pages
