"""Servers that say what no store could keep: numbers too large, URLs without an end."""

from __future__ import annotations

import random
import string
from typing import TYPE_CHECKING

from .text import html

if TYPE_CHECKING:
    from .connection import Asked, Connection

#: what stands where a status belongs: no HTTP, all of it
STATUSES = ("99999999999999999999", "9223372036854775808", "2147483648", "999", "600", "99", "-1")
#: a page behind each of the others shows that the crawl goes on
PAGES = 9
_LETTERS = string.ascii_letters + string.digits
LONG = "".join(random.Random(7).choices(_LETTERS, k=9_000))
#: characters of the longest URL that a crawl keeps
LONGEST = 2083


async def statuses(asked: Asked, to: Connection) -> None:
    """Answer with numbers that are no status."""
    if asked.path == "/":
        links = [link for n in range(PAGES) for link in (f"/{n}", *STATUSES[n : n + 1])]
        await to.reply(html(f"Front of {asked.host}", links))
    elif (said := asked.path.strip("/")) in STATUSES:
        await to.reply(html(f"This is {said}"), f"{said} OK")
    else:
        await to.reply(html(f"Page {asked.path} of {asked.host}"))


async def long_urls(asked: Asked, to: Connection) -> None:
    """Lead to URLs of 9,000 characters in every way there is."""
    target = f"http://{asked.host}/{asked.path.strip('/')}{LONG}"
    ways = ("moved", "refresh", "canonical", "based", "linked")
    if asked.path == "/":
        await to.reply(html(f"Front of {asked.host}", [*ways, *map(str, range(PAGES))]))
    elif asked.path == "/moved":
        await to.reply(b"", "302 Found", Location=target)
    elif asked.path == "/refresh":
        await to.reply(b'<meta http-equiv="refresh" content="0; url=%s">' % target.encode())
    elif asked.path == "/canonical":
        link = b'<link rel="canonical" href="%s">' % target.encode()
        await to.reply(link + html("Canonical"))
    elif asked.path == "/based":
        await to.reply(b'<base href="%s/">' % target.encode() + html("Based", ["a", "b"]))
    elif asked.path == "/linked":
        longest = f"http://{asked.host}/{LONG}"[:LONGEST]
        await to.reply(html("Linked", [target, longest, f"{target}.pdf", f"/?{LONG}"]))
    else:
        await to.reply(html(f"Page {asked.path} of {asked.host}"))


CASES = {"statuses": statuses, "long-urls": long_urls}
