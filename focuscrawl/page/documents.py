"""What is no HTML and can be read all the same: site maps, feeds, PDF; each as a `PageView`.

Their readers are made for files that people mean well with, and take a stranger's for minutes or
gigabytes: they run where they can be ended (`focuscrawl.page.apart`).
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.foundation import urls
from focuscrawl.page.parse import MAX_LINKS, MAX_TOGETHER, MAX_TOKENS
from focuscrawl.page.tokens import tokenize
from focuscrawl.page.view import Links, PageView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: what a `PageView` may be, beside a page
PDF, SITE_MAP, SITE_MAP_INDEX, FEED = "PDF", "site map", "site map index", "feed"
#: what is no page, but leads to some
LISTS = (SITE_MAP, SITE_MAP_INDEX, FEED)

_GZIP = b"\x1f\x8b"
_UNPACKED = 50 * 1024 * 1024  # bytes; sitemaps.org: no site map is larger
_START = 4096  # bytes, of what comes before the first element
_SITE_MAP = re.compile(rb"<(?:\w+:)?(?:urlset|sitemapindex)[\s>]", re.IGNORECASE)
_FEED = re.compile(rb"<(?:(?:\w+:)?feed|rss|rdf:RDF)[\s>]", re.IGNORECASE)


class UnreadableError(Exception):
    """A document is damaged, locked, or holds nothing of its kind."""


class Entry(NamedTuple):
    """What a document leads to: a normalised URL, what it says of it, the leaf this is in."""

    url: str
    text: str
    leaf: int


def is_pdf(body: bytes) -> bool:
    """Tell whether a body is a PDF; a few bytes may come before its mark."""
    return b"%PDF-" in body[:1024]


def list_kind(body: bytes) -> str | None:
    """Tell whether a body is a site map, of pages or of others, or a feed; None: neither."""
    start = unpack(body, _START)
    if _SITE_MAP.search(start):
        return SITE_MAP
    return FEED if _FEED.search(start) else None


def unpack(body: bytes, most: int = _UNPACKED) -> bytes:
    """Return a body that may be packed with gzip, as far as `most` bytes and as it is sound."""
    if not body.startswith(_GZIP):
        return body[:most]
    try:
        return zlib.decompressobj(31).decompress(body, most)
    except zlib.error:
        return b""


def parse_document(body: bytes, url: str, kind: str) -> PageView:
    """Read a document.

    Parameters
    ----------
    url : absolute URL it was fetched from
    kind : `PDF`, or what `list_kind` says

    Raises
    ------
    UnreadableError
        It cannot be read.
    """
    # each of them imports what only it needs
    if kind == PDF:
        from focuscrawl.page.pdf import read_pdf  # noqa: PLC0415

        return read_pdf(body, url)
    if kind == FEED:
        from focuscrawl.page.feeds import read_feed  # noqa: PLC0415

        return read_feed(unpack(body), url)
    from focuscrawl.page.site_maps import read_site_map  # noqa: PLC0415

    return read_site_map(unpack(body), url)


def document_view(
    url: str,
    kind: str,
    title: str,
    leaves: list[str],
    entries: Sequence[Entry],
    *,
    translations: Mapping[str, str] | None = None,
) -> PageView:
    """Return a document as a page of text and links.

    Parameters
    ----------
    leaves : its texts; the title is put before them, as leaf 0
    entries : where it leads; the leaf of each counts from 0 in `leaves`
    translations : languages by the URLs that it says are the same as its entries in these
    """
    tokens, token_leaf = tokenize([title, *leaves])
    kept = _fitting(entries[:MAX_LINKS])
    at = np.array([entry.leaf + 1 for entry in kept], np.int32)
    links = Links(
        urls=[entry.url for entry in kept],
        anchors=[entry.text for entry in kept],
        left=at,
        right=at.copy(),
        nofollow=np.zeros(len(kept), np.bool_),
    )
    return PageView(
        url=urls.normalize(url) or url,
        title=title,
        tokens=tokens[:MAX_TOKENS],
        token_leaf=token_leaf[:MAX_TOKENS],
        n_leaves=len(leaves) + 1,
        links=links,
        canonical=None,
        refresh=None,
        noindex=False,
        nofollow=False,
        encoding="utf-8",
        links_cut=len(entries) - len(kept),
        kind=kind,
        translations=[*(translations or ())],
        translated_to=[*(translations or {}).values()],
    )


def _fitting(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return the first entries, whose URLs together are no longer than those of a page may be."""
    length = 0
    for at, entry in enumerate(entries):
        length += len(entry.url)
        if length > MAX_TOGETHER:
            return entries[:at]
    return entries
