"""`parse_page`: the stages from bytes to `PageView`, in their order."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation import urls
from focuscrawl.page.effort import Effort, effort
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.metadata import Metadata, read_metadata
from focuscrawl.page.tokens import tokenize
from focuscrawl.page.tree import parse_tree
from focuscrawl.page.view import Links, PageView
from focuscrawl.page.walk import Outline, anchor_texts, outline

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

_LANGUAGE_TAG = 35  # characters; a longer one is none (RFC 5646, section 4.4.1)
_NOWHERE = "data:"  # resolves to no URL of the web


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
        It may take longer than `most` says; nothing was parsed.

    Notes
    -----
    Raises nothing else on any bytes. Leaves and offsets are those of METHODS 4 [A02 section
    2.2.1]. Of more than `MAX_SIZE` the beginning is read; of more than `MAX_LINKS` links, or
    `MAX_TOKENS` tokens, the first are kept. URLs longer than `focuscrawl.foundation.urls.MAX_URL`
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
    base = (meta.base is not None and _resolve(own, [meta.base])[0]) or own
    links_cut = seen.cut(MAX_LINKS)
    # One call resolves everything; what the page does not say resolves as "" and is dropped.
    canonical, refresh, *targets = _resolve(
        base, [meta.canonical or "", meta.refresh or "", *seen.references]
    )
    links_cut += seen.cut(_fitting(targets))
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
        language="" if root is None else root.get("lang", "")[:_LANGUAGE_TAG],
    )


def _alternates(base: str, meta: Metadata) -> tuple[list[str], list[tuple[str, str]]]:
    """Return where a page has feeds, and where it is in other languages, in which."""
    if not meta.feeds and not meta.translations:
        return [], []
    languages = [language for language, _ in meta.translations]
    found = _resolve(base, meta.feeds + [target for _, target in meta.translations])
    n = len(meta.feeds)
    translations = [
        (language, target)
        for language, target in zip(languages, found[n:], strict=True)
        if target is not None
    ]
    return [feed for feed in found[:n] if feed is not None], translations


def _resolve(base: str, references: list[str]) -> list[str | None]:
    """Resolve references, but for those that are too long, before or after."""
    if max(map(len, references)) > urls.MAX_URL:
        references = [each if len(each) <= urls.MAX_URL else _NOWHERE for each in references]
    found = urls.resolve(base, references)
    if max(map(len, filter(None, found)), default=0) > urls.MAX_URL:
        found = [None if url is not None and len(url) > urls.MAX_URL else url for url in found]
    return found


def _fitting(texts: Sequence[str | None]) -> int:
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
    fitting = _fitting(anchors)
    anchors[fitting:] = [""] * (len(anchors) - fitting)
    if len(web) < len(targets):
        keep = [target is not None for target in targets]
        anchors = list(compress(anchors, keep))
        left, right, nofollow = left[keep], right[keep], nofollow[keep]
    return Links(urls=web, anchors=anchors, left=left, right=right, nofollow=nofollow)
