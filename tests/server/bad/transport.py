"""Servers that answer slowly, in part, or with what is no answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .text import html

if TYPE_CHECKING:
    from .connection import Asked, Connection

PATIENCE = 120.0  # seconds; longer than any client here waits
_FLOOD = 2_000_000_000  # bytes; no client here should take so many


async def silent(_: Asked, to: Connection) -> None:
    """Take the request and never answer."""
    await asyncio.sleep(PATIENCE)


async def slow_headers(_: Asked, to: Connection) -> None:
    """Send the headers a byte at a time."""
    await to.dripping(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + b"X-Pad: x\r\n" * 99, 0.3
    )


async def slow_body(_: Asked, to: Connection) -> None:
    """Send the body a byte at a time."""
    await to.head(Content_Length=100_000)
    await to.dripping(html("Slow") * 200, 0.3)


async def endless_headers(_: Asked, to: Connection) -> None:
    """Send header after header."""
    await to.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
    while to.sent < _FLOOD:
        await to.send(b"".join(b"X-%d-%d: %s\r\n" % (to.sent, i, b"x" * 500) for i in range(100)))


async def endless_header(_: Asked, to: Connection) -> None:
    """Send one header, folded over line after line."""
    await to.send(b"HTTP/1.1 200 OK\r\nX-Folded: x\r\n")
    while to.sent < _FLOOD:
        await to.send(b" and more of it\r\n" * 4_000)


async def endless_continue(_: Asked, to: Connection) -> None:
    """Promise an answer, again and again."""
    while to.sent < _FLOOD:
        await to.send(b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>; rel=preload\r\n\r\n" * 500)


async def reset(_: Asked, to: Connection) -> None:
    """Reset the connection in place of an answer."""
    to.reset()


async def reset_in_body(_: Asked, to: Connection) -> None:
    """Reset the connection in the middle of a page."""
    await to.head(Content_Length=100_000)
    await to.send(html("Reset"))
    await asyncio.sleep(0.05)
    to.reset()


async def empty(_: Asked, to: Connection) -> None:
    """Hang up without a word."""
    await to.close()


async def half(_: Asked, to: Connection) -> None:
    """Promise more than is sent."""
    await to.head(Content_Length=100_000)
    await to.send(html("Half"))
    await to.close()


async def half_chunk(_: Asked, to: Connection) -> None:
    """Hang up in the middle of a chunk."""
    await to.head(Transfer_Encoding="chunked")
    await to.send(b"ffff\r\n" + html("Half a chunk"))
    await to.close()


async def longer(_: Asked, to: Connection) -> None:
    """Send more than was promised."""
    await to.head(Content_Length=len(html("Longer")))
    await to.send(html("Longer") + b"HTTP/1.1 200 OK\r\n\r\n<p>and this" * 50)
    await to.close()


async def wrong_length(_: Asked, to: Connection) -> None:
    """Promise a negative number of bytes."""
    await to.head(Content_Length=-5)
    await to.send(html("Negative"))
    await to.close()


async def no_http(_: Asked, to: Connection) -> None:
    """Talk another language."""
    await to.send(b"SSH-2.0-OpenSSH_9.2\r\n" + bytes(range(256)) * 20)
    await to.close()


CASES = {
    "silent": silent,
    "slow-headers": slow_headers,
    "slow-body": slow_body,
    "endless-headers": endless_headers,
    "endless-header": endless_header,
    "endless-continue": endless_continue,
    "reset": reset,
    "reset-in-body": reset_in_body,
    "empty": empty,
    "half": half,
    "half-chunk": half_chunk,
    "longer": longer,
    "wrong-length": wrong_length,
    "no-http": no_http,
}
