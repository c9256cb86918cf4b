"""A connection may be kept for any number of answers: what is bounded is bounded for each."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from .running import BICYCLES, QUICK, crawl

PAGES, SIZE = 60, 6_000  # together more than the headers of one answer may be


class Page(BaseHTTPRequestHandler):
    """A page that links to the next one, sent at once with its headers."""

    protocol_version = "HTTP/1.1"
    asked: Counter[str]

    def do_GET(self) -> None:
        self.asked[self.path] += 1
        number = int(self.path[1:]) if self.path[1:].isdecimal() else PAGES
        text = f"bicycle {number} ".ljust(SIZE, "x")
        body = f'<title>{number}</title><p>{text}<a href="/{number + 1}">next</a>'.encode()
        status = "200 OK" if number < PAGES else "404 Not Found"
        self.wfile.write(
            f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    Page.asked = Counter()
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_no_answer_pays_for_the_ones_before(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    seeds = f"http://127.0.0.1:{server.server_port}/0"
    run = crawl(tmp_path / "crawl", **QUICK, **BICYCLES, seeds=seeds, budget=PAGES)
    assert run.kept.query("SELECT DISTINCT status, error FROM page") == [(200, None)]
    asked = {path: n for path, n in Page.asked.items() if path != "/robots.txt"}
    assert asked == {f"/{number}": 1 for number in range(PAGES)}  # and none was tried again
