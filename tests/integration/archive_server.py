"""A web server for tests that sends byte ranges of the files in a folder."""

from __future__ import annotations

import re
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_TYPES = {".html": "text/html", ".js": "text/javascript"}


class ArchiveServer:
    """Listens on loopback, and serves a folder.

    Attributes
    ----------
    asked : path and time of each request so far
    busy : the next requests are answered with these statuses
    ignores_ranges : whether whole files are sent
    refuse_after : number of requests after which some are refused; None: none are
    refuses : part of the paths that are refused then
    """

    def __init__(self, folder: Path) -> None:
        self.asked: list[tuple[str, float]] = []
        self.busy: list[int] = []
        self.ignores_ranges = False
        self.refuse_after: int | None = None
        self.refuses = ""
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                served.asked.append((self.path, time.monotonic()))
                path = folder / unquote(self.path.partition("?")[0]).lstrip("/")
                if served.busy:
                    self.answer(served.busy.pop(0), b"slow down", **{"Retry-After": "0"})
                elif served.is_refused(self.path):
                    self.answer(403, b"too many requests")
                elif not path.is_file():
                    self.answer(404, b"none")
                elif served.ignores_ranges or "Range" not in self.headers:
                    kind = _TYPES.get(path.suffix, "application/octet-stream")
                    self.answer(200, path.read_bytes(), **{"Content-Type": kind})
                else:
                    self.send_range(path.read_bytes())

            def send_range(self, data: bytes) -> None:
                asked = _RANGE.fullmatch(self.headers["Range"])
                assert asked is not None
                first, last = asked.groups()
                start = int(first) if first else max(len(data) - int(last), 0)
                if start >= len(data):
                    self.answer(416, b"", **{"Content-Range": f"bytes */{len(data)}"})
                    return
                part = data[start : int(last) + 1 if first and last else None]
                place = f"bytes {start}-{start + len(part) - 1}/{len(data)}"
                self.answer(206, part, **{"Content-Range": place})

            def answer(self, status: int, body: bytes, **headers: str) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            do_HEAD = do_GET  # noqa: N815

            def log_message(self, *said: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def is_refused(self, path: str) -> bool:
        """Return whether the latest request is refused."""
        late = self.refuse_after is not None and len(self.asked) > self.refuse_after
        return late and self.refuses in path

    @contextmanager
    def serving(self) -> Iterator[ArchiveServer]:
        """Serve until the end of the block."""
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()
