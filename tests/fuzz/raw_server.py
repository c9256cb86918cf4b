"""Sends bytes, whatever they are, to whoever asks: a host an address, all on loopback."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

_HOLD = 20.0  # seconds that a connection is held open; longer than a crawl waits
_SHOWN = 500  # bytes of an answer in a message
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: no goodbye


@dataclass(frozen=True)
class Answer:
    """What is sent for a request, and what happens to the connection then.

    Attributes
    ----------
    ending : ``close``; ``keep`` it for the next request; ``reset``; ``hold`` it and say nothing
    """

    data: bytes
    ending: str = "close"

    def __repr__(self) -> str:
        data = self.data
        if len(data) > _SHOWN:
            return f"Answer({data[:_SHOWN]!r}... {len(data):,} bytes, {self.ending!r})"
        return f"Answer({data!r}, {self.ending!r})"


def page(title: str, *links: str) -> Answer:
    """Return a page as it should be."""
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    body = f"<title>{title}</title><p>bicycle {title} {anchors}".encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
    return Answer(head.encode() + body, "keep")


NOTHING = Answer(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "keep")


@dataclass
class RawServer:
    """Hosts, each at an address of its own.

    Parameters
    ----------
    answer : what a host says, by its number, the path, and how often it was asked for before
    """

    answer: Callable[[int, str, int], Answer]
    n_hosts: int
    origins: list[str] = field(default_factory=list)
    _servers: list[socketserver.ThreadingTCPServer] = field(default_factory=list)
    _asked: dict[tuple[int, str], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        for number in range(self.n_hosts):
            server = socketserver.ThreadingTCPServer(
                (f"127.0.1.{number + 1}", 0), self._of(number)
            )
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
            host, port = server.socket.getsockname()
            self._servers.append(server)
            self.origins.append(f"http://{host}:{port}")
        return self

    def __exit__(self, *exception: object) -> None:
        self._closed.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def _of(self, number: int) -> type[socketserver.BaseRequestHandler]:
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    while path := _path(self.rfile.readline(), self.rfile.readline):
                        answer = outer._next(number, path)
                        self.connection.sendall(answer.data)
                        if answer.ending == "hold":
                            outer._closed.wait(_HOLD)
                        if answer.ending == "reset":
                            self._reset()
                        if answer.ending != "keep":
                            return

            def _reset(self) -> None:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                for each in (self.rfile, self.wfile, self.connection):
                    each.close()

            def finish(self) -> None:
                with contextlib.suppress(OSError):
                    super().finish()

        return Handler

    def _next(self, number: int, path: str) -> Answer:
        with self._lock:
            before = self._asked.get((number, path), 0)
            self._asked[number, path] = before + 1
        return self.answer(number, path, before)


def _path(first: bytes, readline: Callable[[], bytes]) -> str:
    """Return the path of a request whose first line was read; nothing at the end."""
    while first and readline().strip():
        pass
    return first.split(b" ")[1].decode("latin-1") if first.count(b" ") > 1 else ""
