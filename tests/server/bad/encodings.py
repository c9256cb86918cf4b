"""Pages whose encoding is not what is said, or is not said."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .text import html

if TYPE_CHECKING:
    from .connection import Asked, Connection

_TEXT = "Fahrräder für Großstädte, vélos à Orléans"


def _encoded(encoding: str, kind: str, bom: bytes = b"") -> Callable[..., object]:
    body = bom + html(f"{_TEXT} {encoding} {kind}", ["/next"]).decode().encode(encoding)

    async def case(asked: Asked, to: Connection) -> None:
        await to.reply(
            body if asked.path == "/" else html(f"Next of {asked.host}"), Content_Type=kind
        )

    return case


CASES = {
    "charset-wrong": _encoded("latin-1", "text/html; charset=utf-8"),
    "charset-unknown": _encoded("utf-8", "text/html; charset=x-nobody-knows"),
    "charset-missing": _encoded("latin-1", "text/html"),
    "charset-unsaid": _encoded("utf-16-le", "text/html"),
    "charset-twice": _encoded("utf-8", "text/html; charset=utf-16", b"\xef\xbb\xbf"),
    "charset-hex": _encoded("utf-8", "text/html; charset=hex"),
    "type-missing": _encoded("utf-8", ""),
}
