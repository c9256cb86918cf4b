"""Serve the bad web until standard input is closed; the first line printed says where."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..certificates import Authority
from . import bodies, encodings, refused, robots, statuses, transport, traps
from .connection import Asked, Connection
from .text import html

if TYPE_CHECKING:
    import ssl

PAGES = 8  # of the good site, besides its front page


async def good(asked: Asked, to: Connection) -> None:
    """Answer as a site does that nothing is wrong with."""
    links = [f"/{number}" for number in range(PAGES)] if asked.path == "/" else []
    await to.reply(html(f"Page {asked.path} of {asked.host}", links))


CASES: dict[str, Callable[..., object]] = {
    "good": good,
    **transport.CASES,
    **bodies.CASES,
    **encodings.CASES,
    **statuses.CASES,
    **refused.CASES,
    **traps.CASES,
    **robots.CASES,
    "tls-good": good,
    "tls-expired": good,
    "tls-self-signed": good,
    "tls-wrong-host": good,
    "tls-not": good,
    "tls-silent": good,
}


class BadWeb:
    """The servers, one a case, each at an address of its own and all at one port."""

    def __init__(self, log: IO[str]) -> None:
        self._log = log
        self._addresses = {case: f"127.77.0.{number}" for number, case in enumerate(CASES, 1)}
        self._cases = {address: case for case, address in self._addresses.items()}
        self._hits: Counter[tuple[str, str]] = Counter()
        self.origins: dict[str, str] = {}

    async def listen(self, folder: Path) -> None:
        """Open all sockets; answers come from the same process."""
        authority = Authority(folder)
        contexts = {
            "tls-good": authority.context(self._addresses["tls-good"]),
            "tls-expired": authority.context(self._addresses["tls-expired"], days=(-30, -1)),
            "tls-self-signed": authority.context(self._addresses["tls-self-signed"], signed=False),
            "tls-wrong-host": authority.context(self._addresses["good"]),
        }
        for case, address in self._addresses.items():
            context: ssl.SSLContext | None = contexts.get(case)
            server = await asyncio.start_server(self._serve, address, 0, ssl=context)
            port = server.sockets[0].getsockname()[1]
            scheme = "https" if case.startswith("tls-") else "http"
            self.origins[case] = f"{scheme}://{address}:{port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to = Connection(reader, writer)
        case = self._cases[to.address]
        with contextlib.suppress(OSError):
            if case == "tls-silent":
                await asyncio.sleep(transport.PATIENCE)
            elif case == "tls-not":
                await reader.read(1)
                await to.reply(b"no TLS here", "400 Bad Request")
                to.spent = True
            while not to.spent and (line := await to.request_line()) is not None:
                await self._answer(case, line[0], line[1], to)
        await to.close()

    async def _answer(self, case: str, path: str, host: str, to: Connection) -> None:
        self._hits[case, path] += 1
        asked = Asked(path, self._hits[case, path], self.origins, host, "http")
        began, before = time.monotonic(), to.sent
        try:
            if path == "/robots.txt":
                await robots.ROBOTS.get(case, robots.missing)(asked, to)
            else:
                await CASES[case](asked, to)  # type: ignore[misc]
        finally:
            # nobody can have acted on an answer before its last bytes were sent
            entry = {"case": case, "path": path, "began": began, "ended": to.sent_at}
            self._log.write(json.dumps({**entry, "sent": to.sent - before}) + "\n")
            self._log.flush()


async def serve(log: IO[str]) -> None:
    """Serve until standard input ends."""
    web = BadWeb(log)
    with tempfile.TemporaryDirectory() as folder:
        await web.listen(Path(folder))
        said = {"origins": web.origins, "authority": str(Path(folder) / "authority.pem")}
        print(json.dumps(said), flush=True)  # noqa: T201
        await asyncio.to_thread(sys.stdin.read)
    os._exit(0)  # whoever is still being served is not waited for


def main(log_path: str) -> None:
    """Run the servers; what they are asked is written to the log."""
    with Path(log_path).open("w", encoding="utf-8") as log:
        asyncio.run(serve(log))


if __name__ == "__main__":
    main(sys.argv[1])
