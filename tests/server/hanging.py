"""Servers that keep connections and hang up on the second request; as `server` is run.

``outer`` may be crawled, ``inner`` nobody may reach; both listen at the same port, with TLS at
another, so that a name can lead to each of them in turn. What comes is a line of JSON in the
log: where, and what, a connection or the first bytes of a request; and when that was sent, if
`server.downloadhandlers.Stamping` did.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from .bad.text import html
from .certificates import Authority
from .networks import INNER, OUTER

if TYPE_CHECKING:
    import ssl

PAGES = 3
_SERVERS = {OUTER: "outer", INNER: "inner"}
_FIRST = 40  # bytes that are noted


class Servers:
    """The servers, and what they were sent."""

    def __init__(self, log: IO[str]) -> None:
        self._log = log

    async def listen(self, address: str, port: int, context: ssl.SSLContext | None) -> int:
        """Open a socket; return its port."""
        first = context is not None and address == INNER
        # nobody may even begin to encrypt there: what comes is noted as it is
        serve = self._note_bytes if first else self._serve
        server = await asyncio.start_server(serve, address, port, ssl=None if first else context)
        listening: int = server.sockets[0].getsockname()[1]
        return listening

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._note(writer, "")
        answered = 0
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode()
                host = head.partition(b"Host: ")[2].partition(b"\r\n")[0].decode()
                at = head.partition(b"X-Sent: ")[2].partition(b"\r\n")[0]
                self._note(writer, path, sent=float(at) if at else None)
                if answered and path != "/robots.txt":
                    break
                answered += path != "/robots.txt"
                writer.write(_answer(path, host))
                await writer.drain()
        writer.close()

    async def _note_bytes(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._note(writer, "")
        with contextlib.suppress(OSError):
            while sent := await reader.read(_FIRST):
                self._note(writer, repr(sent))

    def _note(self, writer: asyncio.StreamWriter, what: str, *, sent: float | None = None) -> None:
        server = _SERVERS[writer.get_extra_info("sockname")[0]]
        entry = {"server": server, "what": what, "sent": sent}
        self._log.write(json.dumps(entry) + "\n")
        self._log.flush()


def _answer(path: str, host: str) -> bytes:
    if path == "/robots.txt":
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    links = [f"/{number}" for number in range(PAGES)] if path == "/" else []
    body = html(f"Page {path} of {host}", links)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def serve(log: IO[str]) -> None:
    """Serve until standard input ends; the first line printed says at which ports."""
    servers = Servers(log)
    with tempfile.TemporaryDirectory() as folder:
        context = Authority(Path(folder)).context(INNER, signed=False)
    port = await servers.listen(OUTER, 0, None)
    await servers.listen(INNER, port, None)
    tls = await servers.listen(OUTER, 0, context)
    await servers.listen(INNER, tls, context)
    print(json.dumps({"port": port, "tls": tls}), flush=True)  # noqa: T201
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)  # whoever is still being served is not waited for


def main(log_path: str) -> None:
    """Run the servers; what they are sent is written to the log."""
    with Path(log_path).open("w", encoding="utf-8") as log:
        asyncio.run(serve(log))


if __name__ == "__main__":
    main(sys.argv[1])
