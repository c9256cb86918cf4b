"""Sites without an end: every page leads to more of the same."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

from .text import html

if TYPE_CHECKING:
    from .connection import Asked, Connection

_MONTHS = 12


def _number(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


async def calendar(asked: Asked, to: Connection) -> None:
    """Link to the next month and the last, and to every day of this one."""
    parts = [int(part) for part in asked.path.strip("/").split("/") if part.isdigit()]
    year, month, *_ = [*parts, 2024, 1][:2] if len(parts) >= 2 else [2024, 1]
    after = (year + month // _MONTHS, month % _MONTHS + 1)
    before = (year - (month == 1), (month - 2) % _MONTHS + 1)
    days = [f"/{year}/{month}/{day}" for day in range(1, 29)]
    links = ["/{}/{}".format(*after), "/{}/{}".format(*before), *days]
    await to.reply(html(f"Rides of {asked.path}", links))


async def sessions(asked: Asked, to: Connection) -> None:
    """Give every visit a session id of its own, and carry it in every link."""
    session = f"{_number(f'{asked.path} {asked.hits}'):08x}"
    path = asked.path.partition("?")[0]
    links = [f"/page-{number}?sid={session}" for number in range(5)]
    await to.reply(html(f"Shop {path}", links))


async def segments(asked: Asked, to: Connection) -> None:
    """Answer relative links below whatever was asked for, so that paths grow."""
    folder = asked.path.rstrip("/")
    links = [f"{folder}/{name}/" for name in ("rides", "clubs", "races")]
    await to.reply(html(f"Listing of {len(folder)}", links))


async def permutations(asked: Asked, to: Connection) -> None:
    """Offer every filter in every order, and again."""
    query = asked.path.partition("?")[2]
    names = ("colour", "size", "brand", "year", "sort")
    links = [f"/?{query + '&' if query else ''}{name}={len(query) % 3}" for name in names]
    await to.reply(html("Bicycles to buy", links, text=query.replace("&", " ")))


async def soft_404(asked: Asked, to: Connection) -> None:
    """Say with a 200 that there is no such page, and offer others."""
    if asked.path == "/":
        await to.reply(html("Front", [f"/article-{number}" for number in range(50)]))
        return
    number = _number(asked.path)
    links = [f"/suggested-{number}-{other}" for other in range(10)]
    await to.reply(html("Not found", links, text=f"We cannot find {asked.path} any more."))


async def near_duplicates(asked: Asked, to: Connection) -> None:
    """Serve one text by the thousand, with another number in it each time."""
    words = random.Random(3).choices(
        ["wheel", "frame", "brake", "saddle", "chain", "pedal", "spoke", "gear"], k=300
    )
    number = int(asked.path.strip("/") or 0)
    links = [f"/{10 * number + other}" for other in range(1, 11)]
    await to.reply(html(f"Offer {number}", links, text=" ".join(words)))


CASES = {
    "calendar": calendar,
    "sessions": sessions,
    "segments": segments,
    "permutations": permutations,
    "soft-404": soft_404,
    "near-duplicates": near_duplicates,
}
