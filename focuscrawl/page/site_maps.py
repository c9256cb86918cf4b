"""Site maps and indices of them, as sitemaps.org has them."""

from __future__ import annotations

import io
import math
import re
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lxml import etree

from focuscrawl.foundation.urls import MAX_URL, host, resolve
from focuscrawl.foundation.w3c_dates import changed_at
from focuscrawl.page.documents import (
    SITE_MAP,
    SITE_MAP_INDEX,
    Entry,
    UnreadableError,
    document_view,
)
from focuscrawl.page.metadata import MAX_TAG, MAX_TRANSLATIONS
from focuscrawl.page.parse import MAX_LINKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from focuscrawl.page.view import PageView

MOST = 50_000  # entries; sitemaps.org: no site map has more
_NO_WORD = re.compile(r"[\W_]+")
_LONGEST = 3000  # characters of what is looked at of a URL or a date


def read_site_map(xml: bytes, url: str) -> PageView:
    """Read a site map: the pages it names, the latest changed first, in words of their URLs.

    What has no date comes last, equals as they are listed. Pages that it names as the same in
    another language, with elements of XHTML, are translations, not links. Entities are left
    alone, those that XML itself has aside, and nothing is loaded.

    Raises
    ------
    UnreadableError
        It names no page and no site map.
    """
    found: dict[str, float] = {}
    translations: dict[str, str] = {}
    index = False
    events = etree.iterparse(
        io.BytesIO(xml),
        events=("end",),
        tag=("{*}url", "{*}sitemap"),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        recover=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        for _, element in events:
            index |= etree.QName(element).localname == "sitemap"
            location, changed = _text(element, "loc"), _text(element, "lastmod")
            target = resolve(url, [location])[0] if location else None
            if target is not None and len(target) <= MAX_URL and target not in found:
                at = changed_at(changed)
                found[target] = -math.inf if at is None else at
            for language, other in _translations(element, url):
                if len(translations) < MAX_LINKS:
                    translations.setdefault(other, language)
            _forget(element)
            if len(found) >= MOST:
                break
    except etree.XMLSyntaxError as error:
        if not found:
            raise UnreadableError(str(error)) from None
    if not found:
        raise UnreadableError("it names no page")
    targets = sorted(found, key=lambda each: -found[each])
    texts = [words_of(target) for target in targets]
    entries = [
        Entry(target, text, at)
        for at, (target, text) in enumerate(zip(targets, texts, strict=True))
    ]
    kind = SITE_MAP_INDEX if index else SITE_MAP
    others = {other: said for other, said in translations.items() if other not in found}
    title = f"{kind} of {host(url)}"
    return document_view(url, kind, title, texts, entries, translations=others)


def named_in_robots(text: str, url: str) -> Iterator[str]:
    """Iterate over the site maps that a robots.txt names, wherever among its rules."""
    for line in text.splitlines():
        field, _, value = line.partition(":")
        location = value.strip()[:_LONGEST]
        if field.strip().lower() == "sitemap" and location:
            target = resolve(url, [location])[0]
            if target is not None:
                yield target


def words_of(url: str) -> str:
    """Return the words that the path and the query of a URL are made of."""
    return _NO_WORD.sub(" ", unquote(url.partition("://")[2].partition("/")[2])).strip()


def _translations(element: etree._Element, url: str) -> Iterator[tuple[str, str]]:
    """Iterate over where a page is in other languages, and in which, as it names them."""
    for link in islice(element.iterchildren("{*}link"), MAX_TRANSLATIONS):
        language, location = link.get("hreflang", "").strip(), link.get("href", "").strip()
        if not language or len(location) > MAX_URL or link.get("rel", "").lower() != "alternate":
            continue
        target = resolve(url, [location])[0]
        if target is not None and len(target) <= MAX_URL:
            yield language[:MAX_TAG], target


def _text(element: etree._Element, name: str) -> str:
    child = next(element.iterchildren(f"{{*}}{name}"), None)
    return "" if child is None else (child.text or "").strip()[:_LONGEST]


def _forget(element: etree._Element) -> None:
    """Let go of what was read: of a site map with 50,000 pages one is held at a time."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]
