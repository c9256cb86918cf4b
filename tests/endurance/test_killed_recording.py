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


class _Page(BaseHTTPRequestHandler):
    """Page n links to pages 2 n + 1 and 2 n + 2; /robots.txt and all else is missing."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        name = self.path.removeprefix("/page-")
        time.sleep(_LATENCY)
        number = int(name) if name.isdecimal() else -1
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
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients are killed here."""


@pytest.fixture
def site() -> Iterator[str]:
    with _Server(("127.0.0.1", 0), _Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/page-"
        server.shutdown()


def test_every_page_that_is_known_is_recorded(tmp_path: Path, site: str) -> None:
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
        "seeds": f"{site}0",
        "budget": PAGES,
    }
    rng, folder = random.Random(0), tmp_path / "crawl"
    killed = 0
    for moment in sorted(rng.sample(range(5, PAGES * 3 // 4), KILLS)):
        with start(folder, *options, **arguments) as running:
            running.wait_for(moment)
            time.sleep(rng.uniform(0.0, 0.1))
            run = running.stop(signal.SIGKILL)
        killed += run.returncode == -signal.SIGKILL
        assert_recorded(run)
    assert killed == KILLS
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
