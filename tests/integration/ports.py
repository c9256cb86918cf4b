"""Ports of servers that have to be told theirs, and cannot be asked for it."""

from __future__ import annotations

import random
import socket
import time

#: below those that any system gives out by itself, to clients and to servers that ask for port 0
_FIRST, _LAST = 20_000, 32_000
_LONG = 600.0  # seconds after which a server hangs


def free_port() -> int:
    """Return a port that nobody has, and that nobody is given by chance until it is taken."""
    while True:
        port = random.SystemRandom().randrange(_FIRST, _LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def listens(address: str, port: int) -> bool:
    """Tell whether somebody accepts connections."""
    try:
        socket.create_connection((address, port)).close()
    except OSError:
        return False
    return True


def await_listener(port: int) -> None:
    """Wait until somebody does; Twisted says that it has started before it listens."""
    until = time.monotonic() + _LONG
    while not listens("127.0.0.1", port):
        assert time.monotonic() < until, f"nobody listens at port {port}"
        time.sleep(0.05)
