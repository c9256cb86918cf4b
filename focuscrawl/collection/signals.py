"""What a page asks of robots, and of those who mine texts: by HTTP header and ``meta`` element.

That is X-Robots-Tag and ``<meta name=robots>``, and the TDM Reservation Protocol of the W3C's
community group (``TDM-Reservation``, ``TDM-Policy``), but for its file of a whole host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.page import read_content_type
from focuscrawl.page.documents import is_pdf
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.tree import parse_tree
from focuscrawl.report.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from focuscrawl.webs.protocol import Answer

_ROBOTS = ("x-robots-tag", "robots")
_TDM = ("tdm-reservation", "tdm-policy")
_HEAD = 1 << 16  # bytes of a page that are looked at: such elements are in its head
_MOST, _LONGEST = 20, 100  # wishes of a page, characters of one


def signals_of(answer: Answer) -> list[str]:
    """Return what a page asks for, each once: ``noindex``, ``tdm-reservation=1``."""
    wishes = (one_line(each, _LONGEST) for each in _wishes(answer))
    return [*dict.fromkeys(filter(None, wishes))][:_MOST]


def _wishes(answer: Answer) -> Iterator[str]:
    for name, value in [*answer.headers, *_of_page(answer)]:
        plain = name.strip().lower()
        if plain in _ROBOTS:
            yield from value.lower().split(",")
        elif plain in _TDM and value.strip():
            yield f"{plain}={value.strip()}"


def _of_page(answer: Answer) -> Iterator[tuple[str, str]]:
    if is_pdf(answer.body):
        return
    _, encoding = read_content_type(answer.header("content-type"))
    root = parse_tree(to_utf8(answer.body[:_HEAD], encoding)[0])
    for meta in () if root is None else root.iter("meta"):
        yield meta.get("name", ""), meta.get("content", "")
