"""A web server for tests that sends byte ranges of the files in a folder."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from .loopback import LoopbackServer, QuietHandler

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

        class Handler(QuietHandler):
            def do_GET(self) -> None:  # noqa: N802 - the name in http.server
                served.asked.append((self.path, time.monotonic()))
                path = folder / unquote(self.path.partition("?")[0]).lstrip("/")
                if served.busy:
                    self.answer(served.busy.pop(0), b"slow down", {"Retry-After": "0"})
                elif served.is_refused(self.path):
                    self.answer(403, b"too many requests", {})
                elif not path.is_file():
                    self.answer(404, b"none", {})
                elif served.ignores_ranges or "Range" not in self.headers:
                    kind = _TYPES.get(path.suffix, "application/octet-stream")
                    self.answer(200, path.read_bytes(), {"Content-Type": kind})
                else:
                    self.send_range(path.read_bytes())

            def send_range(self, data: bytes) -> None:
                asked = _RANGE.fullmatch(self.headers["Range"])
                assert asked is not None
                first, last = asked.groups()
                start = int(first) if first else max(len(data) - int(last), 0)
                if start >= len(data):
                    self.answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
                    return
                part = data[start : int(last) + 1 if first and last else None]
                place = f"bytes {start}-{start + len(part) - 1}/{len(data)}"
                self.answer(206, part, {"Content-Range": place})

            do_HEAD = do_GET  # noqa: N815

        self._server = LoopbackServer(Handler)

    @property
    def url(self) -> str:
        """Address of the server."""
        return self._server.url

    def is_refused(self, path: str) -> bool:
        """Return whether the latest request is refused."""
        late = self.refuse_after is not None and len(self.asked) > self.refuse_after
        return late and self.refuses in path

    @contextmanager
    def serving(self) -> Iterator[ArchiveServer]:
        """Serve until the end of the block."""
        with self._server.serving():
            yield self
