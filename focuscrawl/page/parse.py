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
from focuscrawl.page.metadata import MAX_LANGUAGE_TAG, Metadata, read_metadata, resolve_bounded
from focuscrawl.page.view import Links, PageView
from focuscrawl.page.walk import Outline, build_outline, collect_anchor_texts, parse_tree
from focuscrawl.page.words import tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence


#: bytes of UTF-8; what comes after is not read. A page is dozens of times as large in memory
MAX_SIZE = 2 * 1024 * 1024
#: of a page; what comes after is counted
MAX_LINKS = 10_000
#: characters of all the URLs that it leads to, which a base and 10,000 links can make many; and
#: of all anchor texts, as many links may lie around one. What comes after is counted, or empty
MAX_TOTAL_LENGTH = MAX_SIZE
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
_MAX_SQUARES = 20_000_000
_MAX_SQUARES_SHORT_PAGE = 500_000_000
# Bytes between ends of tags, squared and added up, that can hold as many: an attribute has 3 or
# more. A stretch shorter than the least holds too few to count.
_MAX_GAP_SQUARES = 200_000_000
_MIN_GAP = 1000
# A tag and its attributes (WHATWG HTML, "tokenization"). No repetition gives anything back, so
# that each byte is looked at once.
_VALUE = rb"""[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"[^"]*+"?+|'[^']*+'?+|[^\t\n\f\r >]*+)"""
_ATTRIBUTE = rb"[^\t\n\f\r />][^\t\n\f\r />=]*+(?:" + _VALUE + rb")?+"
_TAG = re.compile(
    rb"<[a-z][^\t\n\f\r />]*+((?:[\t\n\f\r /]++|" + _ATTRIBUTE + rb")*+)", re.IGNORECASE
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_BEFORE_VALUE = b"=" + string.whitespace.encode()

_MIN_PARAGRAPH = 160  # characters, at least: shorter texts are joined
_LONG_PARAGRAPH = (
    2 * _MIN_PARAGRAPH
)  # as long as this it ends wherever a leaf does, not only with a sentence
_SENTENCE_ENDS = (".", "!", "?", ":", "。")
_OPENING, _CLOSING = ("(", "[", "“"), (",", ".", ";", ":", "!", "?", ")", "]", "”")


class ParseCost(IntEnum):
    """How long a parse may take.

    SMALL: no longer than an event loop may be held. LARGE: longer, but not for ever; beside other
    work. UNBOUNDED: unknown; in a process that can be killed.
    """

    SMALL = 1
    LARGE = 2
    UNBOUNDED = 3


def estimate_cost(utf8: bytes, min_cost: ParseCost = ParseCost.SMALL) -> ParseCost:
    """Tell how much work it is to parse a page.

    Parameters
    ----------
    utf8 : markup as `focuscrawl.page.encoding.to_utf8` returns it
    min_cost : what is returned at least; less is not looked for, which takes time as well
    """
    if min_cost <= ParseCost.SMALL and _is_small(utf8):
        return ParseCost.SMALL
    return max(min_cost, ParseCost.LARGE if _is_bounded(utf8) else ParseCost.UNBOUNDED)


def _is_small(utf8: bytes) -> bool:
    size = len(utf8)
    if size <= _SMALL_TAGS:
        return True
    return size <= SMALL_SIZE and _count_tags(utf8) <= _SMALL_TAGS and not _has_long_gaps(utf8)


def _is_bounded(utf8: bytes) -> bool:
    if len(utf8) <= _LARGE_SIZE:
        return not _has_many_attributes(utf8, _MAX_SQUARES_SHORT_PAGE)
    return _count_tags(utf8) <= _LARGE_TAGS and not _has_many_attributes(utf8, _MAX_SQUARES)


def _count_tags(utf8: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(utf8, np.uint8) == ord("<")))


def _has_long_gaps(utf8: bytes) -> bool:
    """Tell whether there is room for tags with very many attributes.

    The last ``>`` of every 1,000 bytes is looked for, so that few bytes are looked at. A stretch
    extends over those that may be in the value of an attribute, where they end no tag.
    """
    at, start, squares, size = 0, 0, 0, len(utf8)
    while at < size - _MIN_GAP:
        end = utf8.rfind(b">", at + 1, at + _MIN_GAP)
        if end < 0:
            end = utf8.find(b">", at + _MIN_GAP)
        at = size if end < 0 else end
        square = (at - start) ** 2 if at - start >= _MIN_GAP else 0
        if squares + square > _MAX_GAP_SQUARES:
            return True
        if not _may_be_quoted(utf8, start, at):
            start, squares = at, squares + square
    return False


def _may_be_quoted(utf8: bytes, start: int, at: int) -> bool:
    """Tell whether a value may have begun after `start` that has not ended before `at`."""
    for quote in (b'"', b"'"):
        opening = utf8.rfind(quote, start, at)
        if opening <= start or utf8[opening - 1] not in _BEFORE_VALUE:
            continue
        if utf8[start:opening].rstrip().endswith(b"="):
            return True
    return False


def _has_many_attributes(utf8: bytes, max_squares: int) -> bool:
    """Tell whether tags have more attributes, squared and added up, than `max_cost`.

    They are counted only where there is room for many.
    """
    if not _has_long_gaps(utf8):
        return False
    squares = 0
    for tag in _TAG.finditer(utf8):
        if tag.end() - tag.start() >= _MIN_GAP:
            squares += len(_ATTRIBUTES.findall(tag[1])) ** 2
            if squares > max_squares:
                return True
    return False


class ParseLimitError(Exception):
    """A page is more work than it may be where it is parsed, or has turned out to be."""


def parse_page(
    body: bytes,
    url: str,
    *,
    encoding: str | None = None,
    robots: Sequence[str] = (),
    max_cost: ParseCost = ParseCost.UNBOUNDED,
) -> PageView:
    """Parse a page once, for all who read it.

    Parameters
    ----------
    body : the page, decompressed; any bytes will do
    url : absolute URL it was fetched from
    encoding : charset parameter of its ``Content-Type`` header, if there is one
    robots : X-Robots-Tag headers, if there are any
    max_cost : how long it may take

    Returns
    -------
    The page, empty if `body` holds nothing. Links to the page itself are kept, links that lead
    to no http(s) URL are left out (their leaves are not).

    Raises
    ------
    ParseLimitError
        It may take longer than `max_cost`; nothing was parsed.

    Notes
    -----
    Raises nothing else on any bytes. Leaves and offsets are those of methods 4 [A02 section
    2.2.1]. Of more than `MAX_SIZE` the beginning is read; of more than `MAX_LINKS` links, or
    `MAX_TOKENS` tokens, the first are kept. URLs longer than `focuscrawl.foundation.urls.MAX_URL`
    lead nowhere, and are no base of others: with 10,000 links, each character of it counts.
    """
    utf8, used_encoding = to_utf8(body, encoding, MAX_SIZE)
    if max_cost < ParseCost.UNBOUNDED and estimate_cost(utf8, max_cost) > max_cost:
        raise ParseLimitError
    root = parse_tree(utf8)
    outline = Outline() if root is None else build_outline(root)
    meta = read_metadata(outline.metadata)
    meta.add_robots_fields(robots)
    own_url = urls.normalize(url) or url
    base = (meta.base is not None and resolve_bounded(own_url, [meta.base])[0]) or own_url
    links_cut = outline.truncate_links(MAX_LINKS)
    # One call resolves everything; what the page does not declare resolves as "" and is dropped.
    canonical, refresh, *targets = resolve_bounded(
        base, [meta.canonical or "", meta.refresh or "", *outline.references]
    )
    links_cut += outline.truncate_links(count_within_limit(targets))
    feeds, translations = _alternates(base, meta)
    headings = outline.headings[:MAX_HEADINGS]
    tokens, token_leaf = tokenize(outline.leaves)
    return PageView(
        url=own_url,
        title=outline.title,
        tokens=tokens[:MAX_TOKENS],
        token_leaf=token_leaf[:MAX_TOKENS],
        n_leaves=len(outline.leaves),
        links=to_links(outline, targets[: len(outline.references)]),
        links_cut=links_cut,
        canonical=canonical if meta.canonical else None,
        refresh=refresh if meta.refresh else None,
        refresh_delay=meta.refresh_delay,
        noindex=meta.noindex,
        nofollow=meta.nofollow,
        encoding=used_encoding,
        headings=[text for text, _ in headings],
        heading_leaf=np.array([leaf for _, leaf in headings], np.int32),
        feeds=feeds,
        scripts=outline.scripts,
        translations=[target for _, target in translations],
        translated_to=[language for language, _ in translations],
        language="" if root is None else root.get("lang", "")[:MAX_LANGUAGE_TAG],
    )


def _alternates(base: str, meta: Metadata) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the feeds of a page, and its translations as languages and URLs."""
    if not meta.feeds and not meta.translations:
        return [], []
    languages = [language for language, _ in meta.translations]
    found = resolve_bounded(base, meta.feeds + [target for _, target in meta.translations])
    n = len(meta.feeds)
    translations = [
        (language, target)
        for language, target in zip(languages, found[n:], strict=True)
        if target is not None
    ]
    return [feed for feed in found[:n] if feed is not None], translations


def count_within_limit(texts: Sequence[str | None]) -> int:
    """Return how many of some texts together have no more than `MAX_TOTAL_LENGTH` characters."""
    if sum(map(len, filter(None, texts))) <= MAX_TOTAL_LENGTH:
        return len(texts)
    lengths = [len(text or "") for text in texts]
    return int(np.searchsorted(np.cumsum(lengths), MAX_TOTAL_LENGTH, side="right"))


def to_links(outline: Outline, targets: list[str | None]) -> Links:
    """Keep the links of an outline whose targets, as resolved, are on the web."""
    left = np.array(outline.left, np.int32)
    right = np.array(outline.right, np.int32)
    nofollow = np.array(outline.nofollow, np.bool_)
    web = [target for target in targets if target is not None]
    anchors = collect_anchor_texts(outline)
    fit = count_within_limit(anchors)
    anchors[fit:] = [""] * (len(anchors) - fit)
    if len(web) < len(targets):
        keep = [target is not None for target in targets]
        anchors = list(compress(anchors, keep))
        left, right, nofollow = left[keep], right[keep], nofollow[keep]
    return Links(urls=web, anchors=anchors, left=left, right=right, nofollow=nofollow)


def visible_paragraphs(
    body: bytes, encoding: str | None, max_characters: int
) -> tuple[list[str], bool]:
    """Return what a page shows, in paragraphs, and whether that is not all.

    Parameters
    ----------
    body, encoding : of an HTML page, as for `focuscrawl.page.parse_page`
    max_characters : characters of text
    """
    utf8 = to_utf8(body, encoding, MAX_SIZE)[0]
    if estimate_cost(utf8, ParseCost.LARGE) > ParseCost.LARGE:
        return [], True  # it might take any time
    root = parse_tree(utf8)
    leaves = [] if root is None else build_outline(root).leaves
    paragraphs, left = [""], max_characters
    for leaf in leaves:
        text = " ".join(leaf.split())
        if text and not text.startswith(_CLOSING) and _is_complete_paragraph(paragraphs[-1]):
            paragraphs.append("")
        paragraphs[-1] = _join(paragraphs[-1], text[:left])
        left -= len(text)
        if left < 0:
            break
    return [each for each in paragraphs if each], left < 0 or len(body) > MAX_SIZE


def _is_complete_paragraph(paragraph: str) -> bool:
    if len(paragraph) < _MIN_PARAGRAPH:
        return False
    return len(paragraph) >= _LONG_PARAGRAPH or paragraph.endswith(_SENTENCE_ENDS)


def _join(before: str, text: str) -> str:
    """Join the texts of two leaves, of which one may be a word in the midst of a sentence."""
    if not before or not text or text.startswith(_CLOSING) or before.endswith(_OPENING):
        return before + text
    return f"{before} {text}"
