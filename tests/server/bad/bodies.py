"""Pages that are too much: in bytes, once decompressed, in links, in elements; or no pages."""

from __future__ import annotations

import asyncio
import gzip
import random
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import brotli

from . import hard
from .text import html

if TYPE_CHECKING:
    from .connection import Asked, Connection

_FLOOD = 2_000_000_000  # bytes; no client here should take so many
_BOMB = 500_000_000  # bytes, once decompressed
_FULL = 9_500_000  # bytes; a page just below the limit of the crawler
_MEMBERS = 475_000  # of gzip, empty, 20 bytes each
_PIECE = b"<p>bicycle " + b"x" * 16_000


async def endless_chunks(_: Asked, to: Connection) -> None:
    """Send chunk after chunk."""
    await to.chunked(_PIECE, _FLOOD)


async def endless_body(_: Asked, to: Connection) -> None:
    """Send a body that only hanging up would end."""
    await to.until_closed(_PIECE, _FLOOD)


async def large(_: Asked, to: Connection) -> None:
    """Send a page of 100 MB, and say so."""
    await to.head(Content_Length=100_000_000)
    while to.sent < 100_000_000:
        await to.send(_PIECE)


async def large_unsaid(_: Asked, to: Connection) -> None:
    """Send a page of 100 MB without saying so."""
    await to.until_closed(_PIECE, 100_000_000)
    await to.close()


def _gzip_bomb() -> bytes:
    member = gzip.compress(html("Bomb") + bytes(5_000_000), mtime=0)
    return member * (_BOMB // 5_000_000)


def _brotli_bomb() -> bytes:
    packer = brotli.Compressor(quality=3)
    packed = [packer.process(html("Bomb"))]
    packed += [packer.process(bytes(5_000_000)) for _ in range(_BOMB // 5_000_000)]
    return b"".join([*packed, packer.finish()])


def _deflate_bomb() -> bytes:
    packer = zlib.compressobj(9)
    first = packer.compress(html("Bomb")) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(5_000_000)) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + block * (_BOMB // 5_000_000)


def _packed(pack: Callable[[], bytes], coding: str) -> Callable[[Asked, Connection], object]:
    async def case(_: Asked, to: Connection) -> None:
        await to.reply(await asyncio.to_thread(pack), Content_Encoding=coding)

    return case


def _often() -> bytes:
    body = html("Matryoshka")
    for _ in range(60):
        body = gzip.compress(body, mtime=0)
    return body


def _members() -> bytes:
    return gzip.compress(html("Members"), mtime=0) + gzip.compress(b"", mtime=0) * _MEMBERS


def _page(make: Callable[[], bytes], kind: str = "text/html") -> Callable[..., object]:
    async def case(asked: Asked, to: Connection) -> None:
        if asked.path == "/":
            await to.reply(await asyncio.to_thread(make), Content_Type=kind)
        else:
            await to.reply(html(f"Below {asked.host}{asked.path}"))

    return case


def _many_links() -> bytes:
    """A million links would be more than the 10 MB that are read: as many as go into these."""
    anchors = b"".join(b"<a href=%x>" % number for number in range(_FULL // 14))
    return html("Many links") + anchors


def _million_links() -> bytes:
    anchors = b"".join(b"<a href=/%d>link</a>" % number for number in range(1_000))
    return html("A million links") + anchors * 1_000


def _many_words() -> bytes:
    text = bytearray(random.Random(5).choices(b"abcdefghijklmnopqrstuvwxyz", k=95_000))
    text[::4] = b" " * len(text[::4])
    return html("Many words") + bytes(text) * (_FULL // 95_000)


def _many_elements() -> bytes:
    return html("Many elements") + b"<b>" * (_FULL // 8) + b"<br>" * (_FULL // 8)


def _deep() -> bytes:
    return html("Deep", ["/below"]) + b"<div>" * 50_000 + b'<a href="/bottom">bottom</a>'


def _deeper() -> bytes:
    return html("Deeper") + b"<div>x" * (_FULL // 6)


def _binary(seed: int = 7) -> bytes:
    return random.Random(seed).randbytes(200_000)


def _picture() -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + random.Random(8).randbytes(50_000)


async def _hard(asked: Asked, to: Connection) -> None:
    """Send what ``/kind/size`` names; of where its pages lead nothing is there."""
    made = await asyncio.to_thread(hard.page, asked.path)
    if made is None:
        await to.reply(b"no such page", "404 Not Found")
    else:
        await to.reply(made)


CASES = {
    "hard": _hard,
    "endless-chunks": endless_chunks,
    "endless-body": endless_body,
    "large": large,
    "large-unsaid": large_unsaid,
    "gzip-bomb": _packed(_gzip_bomb, "gzip"),
    "brotli-bomb": _packed(_brotli_bomb, "br"),
    "deflate-bomb": _packed(_deflate_bomb, "deflate"),
    "gzip-often": _packed(_often, ", ".join(["gzip"] * 60)),
    "gzip-not": _packed(lambda: html("Not packed"), "gzip"),
    "brotli-not": _packed(lambda: html("Not packed"), "br"),
    "gzip-half": _packed(lambda: gzip.compress(html("Half of it") * 99, mtime=0)[:-30], "gzip"),
    "gzip-members": _packed(_members, "gzip"),
    "many-links": _page(_many_links),
    "million-links": _page(_million_links),
    "many-words": _page(_many_words),
    "many-elements": _page(_many_elements),
    "deep": _page(_deep),
    "deeper": _page(_deeper),
    "binary": _page(_binary),
    "picture": _page(_picture),
    "binary-unsaid": _page(lambda: _binary(9), ""),
}
