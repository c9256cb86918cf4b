"""From bytes to a `PageView`: what parsing costs, its stages, and the text people read.

The bytes of a page tell what it costs, in a fraction of the time of the parse. That takes time in
proportion to tags and bytes, with one exception: libxml2 looks through all attributes of an
element for each that is added, so that a tag of 100,000 takes as long as ten million tags.
"""

from __future__ import annotations

import re
import string
from enum import IntEnum
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation import urls
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.metadata import MAX_TAG, Metadata, read_metadata, resolve_short
from focuscrawl.page.view import Links, PageView
from focuscrawl.page.walk import Outline, anchor_texts, outline, parse_tree
from focuscrawl.page.words import tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence


#: bytes of UTF-8; what comes after is not read. A page is dozens of times as large in memory
MAX_SIZE = 2 * 1024 * 1024
#: of a page; what comes after is counted
MAX_LINKS = 10_000
#: characters of all the URLs that it leads to, which a base and 10,000 links can make many; and
#: of all anchor texts, as many links may lie around one. What comes after is counted, or empty
MAX_TOGETHER = MAX_SIZE
#: of a page; what comes after is left out
MAX_HEADINGS = 10_000
#: words of a page; critics and learners read no more. A book of 300 pages has as many
MAX_TOKENS = 100_000

#: bytes; no longer page takes 20 ms or less, whatever they are
SMALL_SIZE = 80_000
_SMALL_TAGS = 8_000
# What takes a second or so; more tags than that are too many, and attributes are counted.
_LARGE_SIZE = 300_000
_LARGE_TAGS = 100_000

# Attributes of a tag, squared and added up, that take 20 ms; and a second, which a page that is
# not large may take.
_MANY = 20_000_000
_MANY_ALONE = 500_000_000
# Bytes between ends of tags, squared and added up, that can hold as many: an attribute has 3 or
# more. A stretch shorter than the least holds too few to count.
_STRETCHED = 200_000_000
_LEAST = 1000
# A tag and its attributes (WHATWG HTML, "tokenization"). No repetition gives anything back, so
# that each byte is looked at once.
_VALUE = rb"""[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"[^"]*+"?+|'[^']*+'?+|[^\t\n\f\r >]*+)"""
_ATTRIBUTE = rb"[^\t\n\f\r />][^\t\n\f\r />=]*+(?:" + _VALUE + rb")?+"
_TAG = re.compile(
    rb"<[a-z][^\t\n\f\r />]*+((?:[\t\n\f\r /]++|" + _ATTRIBUTE + rb")*+)", re.IGNORECASE
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_BEFORE_VALUE = b"=" + string.whitespace.encode()

_PARAGRAPH = 160  # characters, at least: shorter texts are joined
_LONG = 2 * _PARAGRAPH  # as long as this it ends wherever a leaf does, not only with a sentence
_SENTENCE = (".", "!", "?", ":", "。")
_OPENING, _CLOSING = ("(", "[", "“"), (",", ".", ";", ":", "!", "?", ")", "]", "”")


class Effort(IntEnum):
    """How long a parse may take.

    SMALL: no longer than an event loop may be held. LARGE: longer, but not for ever; beside other
    work. UNBOUNDED: unknown; in a process that can be killed.
    """

    SMALL = 1
    LARGE = 2
    UNBOUNDED = 3


def effort(utf8: bytes, least: Effort = Effort.SMALL) -> Effort:
    """Tell how much work it is to parse a page.

    Parameters
    ----------
    utf8 : markup as `focuscrawl.page.encoding.to_utf8` returns it
    least : what is returned at least; less is not looked for, which takes time as well
    """
    if least <= Effort.SMALL and _is_small(utf8):
        return Effort.SMALL
    return max(least, Effort.LARGE if _is_bounded(utf8) else Effort.UNBOUNDED)


def _is_small(utf8: bytes) -> bool:
    size = len(utf8)
    if size <= _SMALL_TAGS:
        return True
    return size <= SMALL_SIZE and _tags(utf8) <= _SMALL_TAGS and not _is_stretched(utf8)


def _is_bounded(utf8: bytes) -> bool:
    if len(utf8) <= _LARGE_SIZE:
        return not _is_crowded(utf8, _MANY_ALONE)
    return _tags(utf8) <= _LARGE_TAGS and not _is_crowded(utf8, _MANY)


def _tags(utf8: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(utf8, np.uint8) == ord("<")))


def _is_stretched(utf8: bytes) -> bool:
    """Tell whether there is room for tags with very many attributes.

    The last ``>`` of every 1,000 bytes is looked for, so that few bytes are looked at. A stretch
    extends over those that may be in the value of an attribute, where they end no tag.
    """
    at, start, squares, size = 0, 0, 0, len(utf8)
    while at < size - _LEAST:
        end = utf8.rfind(b">", at + 1, at + _LEAST)
        if end < 0:
            end = utf8.find(b">", at + _LEAST)
        at = size if end < 0 else end
        square = (at - start) ** 2 if at - start >= _LEAST else 0
        if squares + square > _STRETCHED:
            return True
        if not _is_quoted(utf8, start, at):
            start, squares = at, squares + square
    return False


def _is_quoted(utf8: bytes, start: int, at: int) -> bool:
    """Tell whether a value may have begun after `start` that has not ended before `at`."""
    for quote in (b'"', b"'"):
        opening = utf8.rfind(quote, start, at)
        if opening <= start or utf8[opening - 1] not in _BEFORE_VALUE:
            continue
        if utf8[start:opening].rstrip().endswith(b"="):
            return True
    return False


def _is_crowded(utf8: bytes, most: int) -> bool:
    """Tell whether tags have more attributes, squared and added up, than `most`.

    They are counted only where there is room for many.
    """
    if not _is_stretched(utf8):
        return False
    squares = 0
    for tag in _TAG.finditer(utf8):
        if tag.end() - tag.start() >= _LEAST:
            squares += len(_ATTRIBUTES.findall(tag[1])) ** 2
            if squares > most:
                return True
    return False


class TooMuchWorkError(Exception):
    """A page is more work than it may be where it is parsed, or has turned out to be."""


def parse_page(
    body: bytes,
    url: str,
    *,
    encoding: str | None = None,
    robots: Sequence[str] = (),
    most: Effort = Effort.UNBOUNDED,
) -> PageView:
    """Parse a page once, for all who read it.

    Parameters
    ----------
    body : the page, decompressed; any bytes will do
    url : absolute URL it was fetched from
    encoding : charset parameter of its ``Content-Type`` header, if there is one
    robots : X-Robots-Tag headers, if there are any
    most : how long it may take

    Returns
    -------
    The page, empty if `body` holds nothing. Links to the page itself are kept, links that lead
    to no http(s) URL are left out (their leaves are not).

    Raises
    ------
    TooMuchWorkError
        It may take longer than `most`; nothing was parsed.

    Notes
    -----
    Raises nothing else on any bytes. Leaves and offsets are those of methods 4 [A02 section
    2.2.1]. Of more than `MAX_SIZE` the beginning is read; of more than `MAX_LINKS` links, or
    `MAX_TOKENS` tokens, the first are kept. URLs longer than `MAX_URL_LENGTH`
    lead nowhere, and are no base of others: with 10,000 links, each character of it counts.
    """
    utf8, read_in = to_utf8(body, encoding, MAX_SIZE)
    if most < Effort.UNBOUNDED and effort(utf8, most) > most:
        raise TooMuchWorkError
    root = parse_tree(utf8)
    seen = Outline() if root is None else outline(root)
    meta = read_metadata(seen.metadata)
    meta.add_robots_fields(robots)
    own = urls.normalize(url) or url
    base = (meta.base is not None and resolve_short(own, [meta.base])[0]) or own
    links_cut = seen.cut(MAX_LINKS)
    # One call resolves everything; what the page does not declare resolves as "" and is dropped.
    canonical, refresh, *targets = resolve_short(
        base, [meta.canonical or "", meta.refresh or "", *seen.references]
    )
    links_cut += seen.cut(fitting(targets))
    feeds, translations = _alternates(base, meta)
    headings = seen.headings[:MAX_HEADINGS]
    tokens, token_leaf = tokenize(seen.leaves)
    return PageView(
        url=own,
        title=seen.title,
        tokens=tokens[:MAX_TOKENS],
        token_leaf=token_leaf[:MAX_TOKENS],
        n_leaves=len(seen.leaves),
        links=to_links(seen, targets[: len(seen.references)]),
        links_cut=links_cut,
        canonical=canonical if meta.canonical else None,
        refresh=refresh if meta.refresh else None,
        refresh_delay=meta.refresh_delay,
        noindex=meta.noindex,
        nofollow=meta.nofollow,
        encoding=read_in,
        headings=[text for text, _ in headings],
        heading_leaf=np.array([leaf for _, leaf in headings], np.int32),
        feeds=feeds,
        scripts=seen.scripts,
        translations=[target for _, target in translations],
        translated_to=[language for language, _ in translations],
        language="" if root is None else root.get("lang", "")[:MAX_TAG],
    )


def _alternates(base: str, meta: Metadata) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the feeds of a page, and its translations as languages and URLs."""
    if not meta.feeds and not meta.translations:
        return [], []
    languages = [language for language, _ in meta.translations]
    found = resolve_short(base, meta.feeds + [target for _, target in meta.translations])
    n = len(meta.feeds)
    translations = [
        (language, target)
        for language, target in zip(languages, found[n:], strict=True)
        if target is not None
    ]
    return [feed for feed in found[:n] if feed is not None], translations


def fitting(texts: Sequence[str | None]) -> int:
    """Return how many of some texts together have no more than `MAX_TOGETHER` characters."""
    if sum(map(len, filter(None, texts))) <= MAX_TOGETHER:
        return len(texts)
    lengths = [len(text or "") for text in texts]
    return int(np.searchsorted(np.cumsum(lengths), MAX_TOGETHER, side="right"))


def to_links(seen: Outline, targets: list[str | None]) -> Links:
    """Keep the links of an outline whose targets, as resolved, are on the web."""
    left = np.array(seen.left, np.int32)
    right = np.array(seen.right, np.int32)
    nofollow = np.array(seen.nofollow, np.bool_)
    web = [target for target in targets if target is not None]
    anchors = anchor_texts(seen)
    fit = fitting(anchors)
    anchors[fit:] = [""] * (len(anchors) - fit)
    if len(web) < len(targets):
        keep = [target is not None for target in targets]
        anchors = list(compress(anchors, keep))
        left, right, nofollow = left[keep], right[keep], nofollow[keep]
    return Links(urls=web, anchors=anchors, left=left, right=right, nofollow=nofollow)


def shown_text(body: bytes, encoding: str | None, longest: int) -> tuple[list[str], bool]:
    """Return what a page shows, in paragraphs, and whether that is not all.

    Parameters
    ----------
    body, encoding : of an HTML page, as for `focuscrawl.page.parse_page`
    longest : characters of text
    """
    utf8 = to_utf8(body, encoding, MAX_SIZE)[0]
    if effort(utf8, Effort.LARGE) > Effort.LARGE:
        return [], True  # it might take any time
    root = parse_tree(utf8)
    leaves = [] if root is None else outline(root).leaves
    paragraphs, left = [""], longest
    for leaf in leaves:
        text = " ".join(leaf.split())
        if text and not text.startswith(_CLOSING) and _is_whole(paragraphs[-1]):
            paragraphs.append("")
        paragraphs[-1] = _joined(paragraphs[-1], text[:left])
        left -= len(text)
        if left < 0:
            break
    return [each for each in paragraphs if each], left < 0 or len(body) > MAX_SIZE


def _is_whole(paragraph: str) -> bool:
    if len(paragraph) < _PARAGRAPH:
        return False
    return len(paragraph) >= _LONG or paragraph.endswith(_SENTENCE)


def _joined(before: str, text: str) -> str:
    """Join the texts of two leaves, of which one may be a word in the midst of a sentence."""
    if not before or not text or text.startswith(_CLOSING) or before.endswith(_OPENING):
        return before + text
    return f"{before} {text}"
