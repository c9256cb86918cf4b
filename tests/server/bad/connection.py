"""One request on a socket, and every way to answer it, the wrong ones included."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

_HTML = {"Content-Type": "text/html; charset=utf-8"}


@dataclass(frozen=True)
class Asked:
    """A request.

    Attributes
    ----------
    path : as in the request line
    hits : how often this path was asked for, this time included
    origins : where each case is, ``http://address:port``
    host, scheme : what the client believes to be talking to
    """

    path: str
    hits: int
    origins: Mapping[str, str]
    host: str
    scheme: str

    def at(self, case: str) -> str:
        """Return the origin of another case."""
        return self.origins[case]


class Connection:
    """A client's connection; counts what it was sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.sent = 0
        self.sent_at = time.monotonic()  # before the last bytes were
        self.spent = False

    async def request_line(self) -> tuple[str, str] | None:
        """Read a request; return its path and its ``Host``, None if there is none."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return None
        first, *fields = head.decode("latin-1").split("\r\n")
        hosts = [f.partition(":")[2].strip() for f in fields if f.lower().startswith("host:")]
        return first.split(" ")[1], "".join(hosts)

    @property
    def address(self) -> str:
        """The address the client connected to."""
        return str(self._writer.get_extra_info("sockname")[0])

    async def send(self, data: bytes) -> Self:
        """Send bytes as they are."""
        self.sent_at = time.monotonic()
        self._writer.write(data)
        await self._writer.drain()
        self.sent += len(data)
        return self

    async def head(self, status: str = "200 OK", /, **headers: object) -> Self:
        """Send a status line and headers; underscores in names are dashes."""
        fields = {**_HTML, **{name.replace("_", "-"): value for name, value in headers.items()}}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value != "")
        return await self.send(f"HTTP/1.1 {status}\r\n{lines}\r\n".encode("latin-1"))

    async def reply(self, body: bytes, status: str = "200 OK", /, **headers: object) -> None:
        """Send a whole answer, as a good server does."""
        await self.head(status, Content_Length=len(body), **headers)
        await self.send(body)

    async def until_closed(self, piece: bytes, limit: int) -> None:
        """Send a body without a length in pieces, as often as `limit` bytes hold them."""
        self.spent = True
        await self.head(Connection="close")
        while self.sent < limit:
            await self.send(piece)

    async def chunked(self, piece: bytes, limit: int, **headers: object) -> None:
        """Send a body in chunks and never say that it is over."""
        self.spent = True
        await self.head(**headers, Transfer_Encoding="chunked")
        chunk = b"%x\r\n%s\r\n" % (len(piece), piece)
        while self.sent < limit:
            await self.send(chunk)

    async def dripping(self, data: bytes, every: float) -> None:
        """Send one byte at a time."""
        for at in range(len(data)):
            await self.send(data[at : at + 1])
            await asyncio.sleep(every)

    def reset(self) -> None:
        """Hang up so that the client is told of a reset."""
        self.spent = True
        linger = struct.pack("ii", 1, 0)
        sock: socket.socket = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._writer.transport.abort()

    async def close(self) -> None:
        """Hang up."""
        self.spent = True
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
