"""Parse HTML pages to `PageView`, estimate the cost of parsing, and extract visible text.

The cost of parsing is estimated from the bytes of a page. The estimate takes a fraction of the
parse time. Parse time is proportional to the number of tags and bytes, with one exception. The
parser libxml2 searches all attributes of an element for each new attribute, so 100,000 attributes
take as long as ten million tags.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from enum import IntEnum
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation import urls
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.metadata import MAX_LANGUAGE_TAG, Metadata, read_metadata, resolve_bounded
from focuscrawl.page.robots_rules import DEFAULT_AGENT, read_robots_rules
from focuscrawl.page.view import Links, PageView
from focuscrawl.page.walk import (
    Outline,
    build_outline,
    collect_anchor_texts,
    find_srcdocs,
    parse_srcdoc,
    parse_tree,
)
from focuscrawl.page.words import tokenize

if TYPE_CHECKING:
    from lxml import etree
    from parsel import Selector


#: bytes of UTF-8 that are parsed; a parsed page takes dozens of times as much memory
MAX_SIZE = 2 * 1024 * 1024
#: links of a page that are kept; the others are counted
MAX_LINKS = 10_000
#: total characters of the URLs of all links of a page, and of all anchor texts. A long base URL or
#: a text inside many links would multiply. Further links are counted, further anchor texts empty
MAX_TOTAL_LENGTH = MAX_SIZE
#: headings of a page that are kept
MAX_HEADINGS = 10_000
#: words of a page that are kept, as many as in a book of 300 pages
MAX_TOKENS = 100_000

#: bytes above which the parse of a page may take more than 20 ms
SMALL_SIZE = 80_000
_SMALL_TAGS = 8_000
# a page of this size is parsed in about a second; of larger pages, tags and attributes are limited
_LARGE_SIZE = 300_000
_LARGE_TAGS = 100_000

# sum of the squared numbers of attributes of the tags, for a parse time of 20 ms, and of a second
# for pages up to `_LARGE_SIZE`
_MAX_SQUARES = 20_000_000
_MAX_SQUARES_SHORT_PAGE = 500_000_000
# sum of the squared numbers of bytes between ends of tags that can have as many attributes, which
# have at least 3 bytes each. Shorter gaps are not counted
_MAX_GAP_SQUARES = 200_000_000
_MIN_GAP = 1000
# A tag and its attributes (WHATWG HTML, "tokenization"). All quantifiers are possessive, so each
# byte is examined once.
_VALUE = rb"""[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"[^"]*+"?+|'[^']*+'?+|[^\t\n\f\r >]*+)"""
_ATTRIBUTE = rb"[^\t\n\f\r />][^\t\n\f\r />=]*+(?:" + _VALUE + rb")?+"
_TAG = re.compile(
    rb"<[a-z][^\t\n\f\r />]*+((?:[\t\n\f\r /]++|" + _ATTRIBUTE + rb")*+)", re.IGNORECASE
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_BEFORE_VALUE = b"=" + string.whitespace.encode()

_MIN_PARAGRAPH = 160  # characters; shorter texts are joined
_LONG_PARAGRAPH = 2 * _MIN_PARAGRAPH  # characters; also ends at a leaf within a sentence
_SENTENCE_ENDS = (".", "!", "?", ":", "。")
_OPENING, _CLOSING = ("(", "[", "“"), (",", ".", ";", ":", "!", "?", ")", "]", "”")


class ParseCost(IntEnum):
    """Classes of pages by the time that parsing takes.

    A page of class SMALL can be parsed in an event loop. Parsing a page of class LARGE takes at
    most about a second, so a background thread parses the page. The parse time of a page of class
    UNBOUNDED is unknown, so a child process that can be killed parses the page.
    """

    SMALL = 1
    LARGE = 2
    UNBOUNDED = 3


def estimate_cost(utf8: bytes, min_cost: ParseCost = ParseCost.SMALL) -> ParseCost:
    """Estimate the cost of parsing a page.

    Parameters
    ----------
    utf8 : markup as returned by `focuscrawl.page.encoding.to_utf8`
    min_cost : lower bound of the result; a higher bound makes the estimate faster
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
    """Return whether gaps between ``>`` are long enough for tags with very many attributes.

    Only the last ``>`` of every 1,000 bytes is searched for, so few bytes are examined. A ``>``
    that may be inside an attribute value does not end a gap.
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
    """Return whether position `at` may be inside a quoted value that starts after `start`."""
    for quote in (b'"', b"'"):
        opening = utf8.rfind(quote, start, at)
        if opening <= start or utf8[opening - 1] not in _BEFORE_VALUE:
            continue
        if utf8[start:opening].rstrip().endswith(b"="):
            return True
    return False


def _has_many_attributes(utf8: bytes, max_squares: int) -> bool:
    """Return whether the sum of the squared numbers of attributes exceeds `max_squares`."""
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
    """Parsing a page has exceeded, or would exceed, a limit of time or memory."""


def parse_page(
    body: bytes,
    url: str,
    *,
    encoding: str | None = None,
    robots: Sequence[str] = (),
    references: Sequence[str] = (),
    agent: str = DEFAULT_AGENT,
    max_cost: ParseCost = ParseCost.UNBOUNDED,
) -> PageView:
    """Parse an HTML page.

    Parameters
    ----------
    body : decompressed body of the response; may be any bytes
    url : absolute URL of the page
    encoding : charset parameter of the ``Content-Type`` header, if given
    robots : values of the X-Robots-Tag header fields
    references : URLs in other header fields that become links, see `HeaderLinks`
    agent : product token of the crawler, by which rules for robots may name it
    max_cost : highest allowed cost of the parse

    Returns
    -------
    The page. Links of a page to itself are kept. Links to other than http(s) URLs are left out,
    but not their leaves. A canonical URL that is neither the page's URL nor the target of another
    link is the last link, because different pages often name one URL.

    Raises
    ------
    ParseLimitError
        If the parse may cost more than `max_cost`. No bytes raise another
        error.

    Notes
    -----
    Leaves and offsets are those of methods.md 4 [A02 section 2.2.1]. The first `MAX_SIZE` bytes,
    `MAX_LINKS` links and `MAX_TOKENS` tokens are kept. URLs longer than
    `focuscrawl.foundation.urls.MAX_URL_LENGTH` are neither links nor base URLs.
    """
    utf8, used_encoding = to_utf8(body, encoding, MAX_SIZE)
    outline, meta, language = _read_tree(utf8, max_cost, agent)
    noindex, nofollow = read_robots_rules([*meta.robots, *robots], agent)
    own_url = urls.normalize(url) or url
    base = own_url
    if meta.base is not None:
        base = resolve_bounded(own_url, [meta.base], used_encoding)[0] or own_url
    refresh = None
    if meta.refresh is not None:
        (refresh,) = resolve_bounded(base, [meta.refresh], used_encoding)
    others = [*references] if refresh in (None, own_url) else [*references, refresh]
    links_cut = outline.truncate_links(MAX_LINKS - len(others))
    for reference in others:
        outline.add_link(reference)
    # one call resolves all references; a missing one is "", and its result is dropped
    canonical, *targets = resolve_bounded(
        base, [meta.canonical or "", *outline.references], used_encoding
    )
    links_cut += outline.truncate_links(count_within_limit(targets))
    if meta.canonical and canonical not in (None, own_url) and canonical not in targets:
        targets[len(outline.references) :] = [canonical]
        outline.add_link(meta.canonical)
    feeds, translations = _alternates(base, meta, used_encoding)
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
        refresh=refresh,
        refresh_delay=meta.refresh_delay,
        noindex=noindex,
        nofollow=nofollow,
        encoding=used_encoding,
        headings=[text for text, _ in headings],
        heading_leaf=np.array([leaf for _, leaf in headings], np.int32),
        feeds=feeds,
        scripts=outline.scripts,
        translations=[target for _, target in translations],
        translated_to=[language for language, _ in translations],
        language=language,
    )


def _read_tree(utf8: bytes, max_cost: ParseCost, agent: str) -> tuple[Outline, Metadata, str]:
    """Parse a page; return its outline, its metadata and its declared language.

    The tree is freed at the end of this function, because freeing takes longer when the tree has
    left the caches of the processor.
    """
    root = _parse_tree(utf8, max_cost)
    if root is None:
        return Outline(), Metadata(), ""
    outline = build_outline(root)
    meta = read_metadata(outline.metadata, agent)
    outline.metadata.clear()  # the elements would keep the tree
    return outline, meta, _declared_language(root)


def parse_selector(body: bytes, encoding: str | None = None) -> Selector:
    """Parse an HTML page to a parsel selector, for CSS and XPath queries.

    The element tree is the one that `parse_page` reads, and lacks, for example, comments.

    Parameters
    ----------
    body, encoding : as in `parse_page`

    Raises
    ------
    ParseLimitError
        If the parse may take more than about a second.
    """
    from parsel import Selector  # noqa: PLC0415 - slow to import

    root = _parse_tree(to_utf8(body, encoding, MAX_SIZE)[0], ParseCost.LARGE)
    return Selector(text="") if root is None else Selector(root=root, type="html")


def _parse_tree(utf8: bytes, max_cost: ParseCost) -> etree._Element | None:
    """Parse a page and the content of its frames; ParseLimitError as in `parse_page`."""
    _check_cost(utf8, max_cost)
    root = parse_tree(utf8)
    frames = [] if root is None else find_srcdocs(root)
    if frames:
        _check_cost("".join(frame.get("srcdoc", "") for frame in frames).encode(), max_cost)
    for frame in frames:
        parse_srcdoc(frame)
    return root


def _check_cost(utf8: bytes, max_cost: ParseCost) -> None:
    if max_cost < ParseCost.UNBOUNDED and estimate_cost(utf8, max_cost) > max_cost:
        raise ParseLimitError


def _declared_language(root: etree._Element) -> str:
    return (root.get("lang") or root.get("xml:lang") or "")[:MAX_LANGUAGE_TAG]


def _alternates(
    base: str, meta: Metadata, encoding: str
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the feeds of a page, and its translations as languages and URLs."""
    if not meta.feeds and not meta.translations:
        return [], []
    languages = [language for language, _ in meta.translations]
    references = meta.feeds + [target for _, target in meta.translations]
    found = resolve_bounded(base, references, encoding)
    n = len(meta.feeds)
    translations = [
        (language, target)
        for language, target in zip(languages, found[n:], strict=True)
        if target is not None
    ]
    return [feed for feed in found[:n] if feed is not None], translations


def count_within_limit(texts: Sequence[str | None]) -> int:
    """Return the number of texts to keep, so that their total length is within the limit.

    The result is the largest n for which the first n texts have at most `MAX_TOTAL_LENGTH`
    characters in total.
    """
    if sum(map(len, filter(None, texts))) <= MAX_TOTAL_LENGTH:
        return len(texts)
    lengths = [len(text or "") for text in texts]
    return int(np.searchsorted(np.cumsum(lengths), MAX_TOTAL_LENGTH, side="right"))


def to_links(outline: Outline, targets: list[str | None]) -> Links:
    """Return the links of a page's outline that have a valid target."""
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
    """Return the visible paragraphs of an HTML page, and whether the text is truncated.

    Parameters
    ----------
    body, encoding : as in `parse_page`
    max_characters : number of characters after which the text is truncated
    """
    utf8 = to_utf8(body, encoding, MAX_SIZE)[0]
    try:
        root = _parse_tree(utf8, ParseCost.LARGE)
    except ParseLimitError:
        return [], True
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
    """Join the texts of two leaves, which may be parts of one sentence."""
    if not before or not text or text.startswith(_CLOSING) or before.endswith(_OPENING):
        return before + text
    return f"{before} {text}"
