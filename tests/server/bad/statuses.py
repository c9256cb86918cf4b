"""Servers that send the crawler on, or tell it to wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import formatdate
from typing import TYPE_CHECKING

from .text import html

if TYPE_CHECKING:
    from .connection import Asked, Connection

_LONG_CHAIN = 12  # redirects, fewer than browsers follow


async def _moved(to: Connection, where: str, status: str = "302 Found") -> None:
    await to.reply(b"", status, Location=where)


async def loop(asked: Asked, to: Connection) -> None:
    """Redirect from one host to another and back."""
    await _moved(to, f"{asked.at('loop-back')}/")


async def loop_back(asked: Asked, to: Connection) -> None:
    """Redirect to where that came from."""
    await _moved(to, f"{asked.at('loop')}/")


async def to_itself(asked: Asked, to: Connection) -> None:
    """Redirect to the URL that was asked for."""
    await _moved(to, asked.path)


async def endless_chain(asked: Asked, to: Connection) -> None:
    """Redirect to the next host of two, for ever."""
    number = int(asked.path.strip("/") or 0)
    hosts = ("endless-chain", "endless-chain-2")
    await _moved(to, f"{asked.at(hosts[(number + 1) % 2])}/{number + 1}")


async def chain(asked: Asked, to: Connection) -> None:
    """Redirect a dozen times, then answer."""
    number = int(asked.path.strip("/") or 0)
    if number < _LONG_CHAIN:
        await _moved(to, f"/{number + 1}")
    else:
        await to.reply(html("The end of the chain"))


async def to_nowhere(asked: Asked, to: Connection) -> None:
    """Redirect to what is no URL, and without saying where to."""
    places = {"/": "http://[::bad", "/empty": "", "/mail": "mailto:a@b.example"}
    if asked.path == "/":
        await to.reply(html("Nowhere", ["/broken", "/empty", "/mail"]))
    else:
        await _moved(to, places.get(asked.path, "http://[::bad"))


def _busy(status: str, after: Callable[[], object], hits: int) -> Callable[..., object]:
    """Be busy for the first `hits` requests for a path."""

    async def case(asked: Asked, to: Connection) -> None:
        if asked.hits <= hits:
            await to.reply(b"busy", status, Retry_After=after())
        else:
            await to.reply(html(f"{asked.host} is not busy any more"))

    return case


def _links(case: Callable[..., object], pages: int) -> Callable[..., object]:
    """Link to many pages that are all busy."""

    async def front(asked: Asked, to: Connection) -> None:
        if asked.path == "/":
            await to.reply(
                html(f"Front of {asked.host}", [f"/{number}" for number in range(pages)])
            )
        else:
            await case(asked, to)  # type: ignore[misc]

    return front


def _nothing() -> str:
    return ""


def _date() -> str:
    return formatdate(time.time() + 3, usegmt=True)  # whole seconds: two or three from now


CASES = {
    "loop": loop,
    "loop-back": loop_back,
    "to-itself": to_itself,
    "endless-chain": endless_chain,
    "endless-chain-2": endless_chain,
    "chain": chain,
    "to-nowhere": to_nowhere,
    "busy-seconds": _busy("429 Too Many Requests", lambda: 2, 1),
    "busy-date": _busy("503 Service Unavailable", _date, 1),
    "busy-unsaid": _busy("429 Too Many Requests", _nothing, 2),
    "busy-nonsense": _busy("503 Service Unavailable", lambda: "soon", 1),
    "busy-for-a-day": _links(_busy("429 Too Many Requests", lambda: 86_400, 10**9), 30),
    "busy-for-ever": _links(_busy("503 Service Unavailable", _nothing, 10**9), 30),
}
