"""A few of the crawls that ``make fuzz FUZZ=live`` makes by the hundred."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from .live import AnyStatus, run
from .raw_server import Answer, RawServer

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.long
def test_no_answer_ends_a_crawl() -> None:
    run(AnyStatus, 1, 6)


def _asks(origin: str, *paths: str) -> bytes:
    """Ask for paths on one connection; return all that is sent."""
    host, port = origin.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        for path in paths:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        said = b""
        while part := connection.recv(1 << 16):
            said += part
        return said


def _says(data: bytes, *endings: str) -> Callable[[int, str, int], Answer]:
    return lambda host, path, before: Answer(
        b"%d %b %d " % (host, path.encode(), before) + data, endings[before]
    )


def test_a_host_says_what_it_is_told_to() -> None:
    with RawServer(_says(b"\0\xff", "keep", "keep", "close", "reset"), 2) as server:
        said = _asks(server.origins[1], "/a", "/a", "/a")
        assert said == b"1 /a 0 \0\xff1 /a 1 \0\xff1 /a 2 \0\xff"
        with pytest.raises(ConnectionResetError):
            _asks(server.origins[1], "/a")
