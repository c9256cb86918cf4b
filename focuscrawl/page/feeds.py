"""Feeds: RSS and Atom, in whatever version."""

from __future__ import annotations

import calendar
import io
import math
from typing import TYPE_CHECKING, Any

from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.urls import MAX_URL, host, resolve
from focuscrawl.page.documents import FEED, Entry, UnreadableError, document_view
from focuscrawl.page.walk import fold

if TYPE_CHECKING:
    from focuscrawl.page.view import PageView

with needs("feeds", "reading feeds"):
    import feedparser

MOST = 1000  # entries
_TEXT = 1000  # characters of a title


def read_feed(xml: bytes, url: str) -> PageView:
    """Read a feed: the pages it names with their titles, the latest first.

    Raises
    ------
    UnreadableError
        It names no page.
    """
    # as a file: a text could be taken for the name of one, or for a URL to fetch
    read = feedparser.parse(io.BytesIO(xml), sanitize_html=False, resolve_relative_uris=False)
    found: dict[str, tuple[float, str]] = {}
    for each in read.entries[:MOST]:
        link = str(each.get("link", ""))
        target = resolve(url, [link])[0] if link and len(link) <= MAX_URL else None
        if target is not None and len(target) <= MAX_URL and target not in found:
            found[target] = (_written_at(each), fold(str(each.get("title", ""))[:_TEXT]))
    if not found:
        raise UnreadableError("it names no page")
    targets = sorted(found, key=lambda each: -found[each][0])
    texts = [found[target][1] for target in targets]
    entries = [Entry(target, found[target][1], at) for at, target in enumerate(targets)]
    title = fold(str(read.feed.get("title", ""))[:_TEXT]) or f"{FEED} of {host(url)}"
    return document_view(url, FEED, title, texts, entries)


def _written_at(entry: dict[str, Any]) -> float:
    # as a dictionary: its own `get` warns of what it does not find
    when = dict.get(entry, "updated_parsed") or dict.get(entry, "published_parsed")
    return -math.inf if when is None else float(calendar.timegm(when))
