"""Servers whose robots.txt is the trouble; their pages are ordinary."""

from __future__ import annotations

import asyncio
import gzip
import random
from typing import TYPE_CHECKING

from .text import html

if TYPE_CHECKING:
    from .connection import Asked, Connection

_TEXT = "text/plain"
_FLOOD = 2_000_000_000  # bytes
_RULES = b"User-agent: *\nDisallow: /private\n"


async def huge(_: Asked, to: Connection) -> None:
    """Send 40 MB of rules, of which the first count."""
    rule = b"Disallow: /*somewhere/%d/else$\n"
    block = b"".join(rule % number for number in range(10_000))
    await to.reply(_RULES + block * 120, Content_Type=_TEXT)


async def endless(_: Asked, to: Connection) -> None:
    """Send rules for ever."""
    await to.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + _RULES)
    while to.sent < _FLOOD:
        await to.send(b"Disallow: /nowhere\n" * 3_000)


async def slow(_: Asked, to: Connection) -> None:
    """Send rules a byte at a time."""
    await to.head(Content_Type=_TEXT)
    await to.dripping(_RULES * 100, 0.3)


async def silent(_: Asked, to: Connection) -> None:
    """Never answer."""
    await asyncio.sleep(120)


async def wrong(_: Asked, to: Connection) -> None:
    """Send bytes that are no rules, and one rule among them."""
    noise = random.Random(1).randbytes(20_000).replace(b"\n", b"")
    await to.reply(noise + b"\n" + _RULES + noise, Content_Type=_TEXT)


async def page(_: Asked, to: Connection) -> None:
    """Send a web page in place of rules, as sites do that know no 404."""
    await to.reply(html("Welcome", ["/"]) * 50)


async def forbidding(_: Asked, to: Connection) -> None:
    """Forbid everything."""
    await to.reply(b"User-agent: *\nDisallow: /\n", Content_Type=_TEXT)


async def broken(_: Asked, to: Connection) -> None:
    """Fail."""
    await to.reply(b"no idea", "500 Internal Server Error")


async def missing(_: Asked, to: Connection) -> None:
    """Have none."""
    await to.reply(b"no such file", "404 Not Found")


async def loop(asked: Asked, to: Connection) -> None:
    """Redirect to itself."""
    await to.reply(b"", "302 Found", Location="/robots.txt")


async def bomb(_: Asked, to: Connection) -> None:
    """Send little that becomes much."""
    body = gzip.compress(_RULES + b"\n" * 1_000_000, mtime=0) * 50
    await to.reply(body, Content_Type=_TEXT, Content_Encoding="gzip")


async def waiting(_: Asked, to: Connection) -> None:
    """Ask for a day between two requests."""
    await to.reply(b"User-agent: *\nCrawl-delay: 86400\n", Content_Type=_TEXT)


async def site(asked: Asked, to: Connection) -> None:
    """Answer for the pages of all these hosts."""
    links = ["/a", "/b", "/private/diary"] if asked.path == "/" else []
    await to.reply(html(f"Page {asked.path} of {asked.host}", links))


ROBOTS = {
    "robots-huge": huge,
    "robots-endless": endless,
    "robots-slow": slow,
    "robots-silent": silent,
    "robots-wrong": wrong,
    "robots-page": page,
    "robots-forbids": forbidding,
    "robots-broken": broken,
    "robots-loop": loop,
    "robots-bomb": bomb,
    "robots-waiting": waiting,
}
CASES = dict.fromkeys(ROBOTS, site)
