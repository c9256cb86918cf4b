"""Serve the test web until standard input is closed; the first line printed says where."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO

from .pages import answer

#: one loopback address a site, so that each is a host of its own
SITES = {
    "a": "127.0.0.2",
    "b": "127.0.0.3",
    "c": "127.0.0.4",
    "slow": "127.0.0.5",
    "asks": "127.0.0.7",
    "forum": "127.0.0.8",
    "odd links": "127.0.0.9",
}
DEAD = "127.0.0.6"
_PIECE = b"x" * 16_384


class Site(ThreadingHTTPServer):
    """The server of one site; appends a line of JSON to the log for every request.

    It does so before it answers, but for large bodies, of which it says how much was sent.
    """

    daemon_threads = True

    def __init__(self, name: str, log: IO[str], lock: threading.Lock) -> None:
        super().__init__((SITES[name], 0), Handler)
        self.name = name
        self.origins: dict[str, str] = {}
        self.hits: Counter[str] = Counter()
        self.stopping = threading.Event()
        self._log = log
        self._lock = lock

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing when a client hangs up."""

    def note(self, entry: dict[str, object]) -> None:
        with self._lock:
            self._log.write(json.dumps({"site": self.name, **entry}) + "\n")
            self._log.flush()


class Handler(BaseHTTPRequestHandler):
    """Answers as `pages.answer` says."""

    protocol_version = "HTTP/1.1"
    server: Site

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.do_GET()

    def do_GET(self) -> None:
        began = time.monotonic()
        self.server.hits[self.path] += 1
        reply = answer(
            self.server.name, self.path, self.server.origins, self.server.hits[self.path]
        )
        noted, sent = False, 0
        try:
            if reply.wait:
                self.server.stopping.wait(reply.wait)
            if not reply.size:  # whoever has the answer can be sure that it is noted
                noted = True
                self._note(began, len(reply.body))
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(reply.size or len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)
            sent = len(reply.body)
            while sent < reply.size:
                self.wfile.write(_PIECE)
                sent += len(_PIECE)
        finally:
            if not noted:
                self._note(began, sent)

    def _note(self, began: float, sent: int) -> None:
        self.server.note(
            {
                "method": self.command,
                "path": self.path,
                "club": self.headers["X-Club"],
                "sent_at": self.headers["X-Sent"],
                "began": began,
                "ended": time.monotonic(),
                "agent": self.headers["User-Agent"],
                "sent": sent,
            }
        )

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep quiet."""


def main(log_path: str) -> None:
    lock = threading.Lock()
    with Path(log_path).open("w", encoding="utf-8") as log, socket.socket() as dead:
        dead.bind((DEAD, 0))  # taken, but nobody listens: connections are refused
        sites = [Site(name, log, lock) for name in SITES]
        origins = {site.name: f"http://{SITES[site.name]}:{site.server_port}" for site in sites}
        origins["dead"] = f"http://{DEAD}:{dead.getsockname()[1]}"
        for site in sites:
            site.origins = origins
            threading.Thread(target=site.serve_forever, daemon=True).start()
        print(json.dumps(origins), flush=True)  # noqa: T201
        sys.stdin.read()
        for site in sites:
            site.stopping.set()
            site.shutdown()
            site.server_close()


if __name__ == "__main__":
    main(sys.argv[1])
