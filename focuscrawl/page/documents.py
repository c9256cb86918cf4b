"""Parse site maps, feeds and PDF documents to `PageView`.

A hostile document can take minutes and gigabytes to parse. So documents are parsed in a child
process that can be killed (`focuscrawl.page.parser_process`).
"""

from __future__ import annotations

import calendar
import io
import math
import re
import zlib
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from lxml import etree

from focuscrawl.foundation import urls
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.urls import host, resolve
from focuscrawl.page.metadata import MAX_LANGUAGE_TAG, MAX_TRANSLATIONS, resolve_bounded
from focuscrawl.page.parse import MAX_LINKS, MAX_SIZE, MAX_TOKENS, count_within_limit
from focuscrawl.page.view import Links, PageView
from focuscrawl.page.walk import collapse_whitespace
from focuscrawl.page.words import tokenize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date

    from pypdf import DocumentInformation, PdfReader


#: values of `PageView.kind` of documents
PDF, SITE_MAP, SITE_MAP_INDEX, FEED = "PDF", "site map", "site map index", "feed"
#: kinds of documents that only list URLs of pages
URL_LIST_KINDS = (SITE_MAP, SITE_MAP_INDEX, FEED)

MAX_PDF_PAGES = 200  #: number of pages of a PDF that are read
_MAX_FEED_ENTRIES = 1000
_MAX_SITE_MAP_ENTRIES = 50_000  # the limit of sitemaps.org
_MAX_FIELD_LENGTH = 1000  # characters of a title or an author
_MAX_VALUE_LENGTH = 3000  # characters of a URL or a date

_GZIP = b"\x1f\x8b"
_MAX_UNPACKED = 50 * 1024 * 1024  # bytes, the limit of sitemaps.org
_PREFIX = 4096  # bytes in which the first element is searched for
_SITE_MAP = re.compile(rb"<(?:\w+:)?(?:urlset|sitemapindex)[\s>]", re.IGNORECASE)
_NON_WORD = re.compile(r"[\W_]+")
_FEED = re.compile(rb"<(?:(?:\w+:)?feed|rss|rdf:RDF)[\s>]", re.IGNORECASE)


class UnreadableError(Exception):
    """A document is damaged or encrypted, or has no content of its kind."""


class DocumentLink(NamedTuple):
    """A link of a document: normalised URL, link text, and index of the leaf with the text."""

    url: str
    text: str
    leaf: int


def is_pdf(body: bytes) -> bool:
    """Return whether the first 1,024 bytes of a body have the signature of PDF."""
    return b"%PDF-" in body[:1024]


def url_list_kind(body: bytes) -> str | None:
    """Return `SITE_MAP` for site maps and their indexes, `FEED` for feeds, else None."""
    start = decompress(body, _PREFIX)
    if _SITE_MAP.search(start):
        return SITE_MAP
    return FEED if _FEED.search(start) else None


def decompress(body: bytes, max_bytes: int = _MAX_UNPACKED) -> bytes:
    """Return the first `max_bytes` of a body, decompressed if it is a gzip file."""
    if not body.startswith(_GZIP):
        return body[:max_bytes]
    try:
        return zlib.decompressobj(31).decompress(body, max_bytes)
    except zlib.error:
        return b""


def parse_document(body: bytes, url: str, kind: str) -> PageView:
    """Parse a document.

    Parameters
    ----------
    url : absolute URL of the document
    kind : `PDF`, or the result of `url_list_kind`

    Raises
    ------
    UnreadableError
        If the document cannot be parsed.
    """
    if kind == PDF:
        found = pdf_text(body, url)
        return _document_view(url, PDF, found.title, found.pages, found.links)
    return (_read_feed if kind == FEED else _read_site_map)(decompress(body), url)


def _document_view(
    url: str,
    kind: str,
    title: str,
    leaves: list[str],
    entries: Sequence[DocumentLink],
    *,
    translations: Mapping[str, str] | None = None,
) -> PageView:
    """Return a document as a page with text and links.

    Parameters
    ----------
    leaves : texts of the document; the title becomes leaf 0, before the texts
    entries : links of the document; their leaves are indices of `leaves`
    translations : languages by the URL of each translation of an entry
    """
    tokens, token_leaf = tokenize([title, *leaves])
    kept = entries[:MAX_LINKS]
    kept = kept[: count_within_limit([entry.url for entry in kept])]
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
        links_cut=len(entries) - len(kept),
        kind=kind,
        translations=[*(translations or ())],
        translated_to=[*(translations or {}).values()],
    )


def _read_feed(xml: bytes, url: str) -> PageView:
    """Return the URLs and titles of a feed's entries, latest first."""
    with require_extra("feeds", "reading feeds"):
        import feedparser  # noqa: PLC0415 - an extra
    # feedparser would open a text that is a file name or a URL, so it gets a file object
    read = feedparser.parse(io.BytesIO(xml), sanitize_html=False, resolve_relative_uris=False)
    found: dict[str, tuple[float, str]] = {}
    for each in read.entries[:_MAX_FEED_ENTRIES]:
        link = str(each.get("link", ""))
        target = resolve_bounded(url, [link])[0] if link else None
        if target is not None and target not in found:
            found[target] = (
                _entry_time(each),
                collapse_whitespace(str(each.get("title", ""))[:_MAX_FIELD_LENGTH]),
            )
    if not found:
        raise UnreadableError("the feed has no URLs of pages")
    targets = sorted(found, key=lambda each: -found[each][0])
    texts = [found[target][1] for target in targets]
    entries = [DocumentLink(target, found[target][1], at) for at, target in enumerate(targets)]
    title = (
        collapse_whitespace(str(read.feed.get("title", ""))[:_MAX_FIELD_LENGTH])
        or f"{FEED} of {host(url)}"
    )
    return _document_view(url, FEED, title, texts, entries)


def _entry_time(entry: dict[str, Any]) -> float:
    # the `get` of feedparser's subclass of dict warns of missing keys
    when = dict.get(entry, "updated_parsed") or dict.get(entry, "published_parsed")
    return -math.inf if when is None else float(calendar.timegm(when))


class PdfText(NamedTuple):
    """Text and metadata of a PDF.

    Attributes
    ----------
    pages : text of each page
    links : links of all pages; `DocumentLink.leaf` is the index of the page
    date : date of modification, else of creation, if given
    """

    pages: list[str]
    links: list[DocumentLink]
    title: str
    author: str
    date: date | None


def pdf_text(body: bytes, url: str) -> PdfText:
    """Return the metadata of a PDF, and the text of its first pages, at most 2 MiB.

    Raises
    ------
    UnreadableError
        If the PDF is damaged or encrypted.
    """
    with require_extra("pdf", "reading PDF"):
        from pypdf import PdfReader  # noqa: PLC0415 - an extra
    try:
        return _read_pdf(PdfReader(io.BytesIO(body), strict=False), url)
    except Exception as error:  # pypdf raises many types on damaged files
        raise UnreadableError(type(error).__name__) from error


def _read_pdf(reader: PdfReader, url: str) -> PdfText:
    texts: list[str] = []
    entries: list[DocumentLink] = []
    length = 0
    for number, page in enumerate(islice(reader.pages, MAX_PDF_PAGES)):
        texts.append(page.extract_text()[: MAX_SIZE - length])
        length += len(texts[-1])
        entries += [DocumentLink(target, "", number) for target in _link_targets(page, url)]
        if length >= MAX_SIZE:
            break
    about = reader.metadata
    title, author = ("", "") if about is None else (about.title or "", about.author or "")
    return PdfText(
        *(
            texts,
            entries[:MAX_LINKS],
            collapse_whitespace(str(title)[:_MAX_FIELD_LENGTH]),
            collapse_whitespace(str(author)[:_MAX_FIELD_LENGTH]),
        ),
        None if about is None else _pdf_date(about),
    )


def _pdf_date(about: DocumentInformation) -> date | None:
    for name in ("modification_date", "creation_date"):
        with suppress(ValueError, TypeError, OverflowError):  # an invalid date
            at = getattr(about, name)
            if at is not None:
                return at.date()  # type: ignore[no-any-return]
    return None


def _link_targets(page: Any, url: str) -> Iterator[str]:
    for annotation in (page.annotations or [])[:MAX_LINKS]:
        action = annotation.get_object().get("/A")
        action = None if action is None else action.get_object()
        written = None if action is None else action.get("/URI")
        target = None if written is None else resolve_bounded(url, [str(written)])[0]
        if target is not None:
            yield target


def parse_w3c_date(written: str) -> float | None:
    """Return the seconds since 1970 of a W3C date such as 2024 or 2024-05-01T10:00+02:00.

    A date without a time zone is in UTC. The result for an invalid date is None.
    """
    missing = {4: "-01-01", 7: "-01"}.get(len(written), "")
    try:
        at = datetime.fromisoformat(written + missing)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _read_site_map(xml: bytes, url: str) -> PageView:
    """Return the URLs of a site map, last modified first; their texts are the words of the URLs.

    URLs without a date come last, in the order of the file. ``xhtml:link`` elements with a
    ``hreflang`` become translations, not links. Entities are not resolved, DTDs not loaded.
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
            location, changed = _child_text(element, "loc"), _child_text(element, "lastmod")
            target = resolve_bounded(url, [location])[0] if location else None
            if target is not None and target not in found:
                at = parse_w3c_date(changed)
                found[target] = -math.inf if at is None else at
            for language, other in _translations(element, url):
                if len(translations) < MAX_LINKS:
                    translations.setdefault(other, language)
            _free(element)
            if len(found) >= _MAX_SITE_MAP_ENTRIES:
                break
    except etree.XMLSyntaxError as error:
        if not found:
            raise UnreadableError(str(error)) from None
    if not found:
        raise UnreadableError("the site map has no URLs of pages")
    targets = sorted(found, key=lambda each: -found[each])
    texts = [_url_words(target) for target in targets]
    entries = [DocumentLink(target, texts[at], at) for at, target in enumerate(targets)]
    kind = SITE_MAP_INDEX if index else SITE_MAP
    others = {other: tag for other, tag in translations.items() if other not in found}
    title = f"{kind} of {host(url)}"
    return _document_view(url, kind, title, texts, entries, translations=others)


def site_maps_in_robots(text: str, url: str) -> Iterator[str]:
    """Yield the URLs of all ``Sitemap`` lines of a robots.txt file."""
    for line in text.splitlines():
        field, _, value = line.partition(":")
        location = value.strip()[:_MAX_VALUE_LENGTH]
        if field.strip().lower() == "sitemap" and location:
            (target,) = resolve(url, [location])
            if target is not None:
                yield target


def _url_words(url: str) -> str:
    return _NON_WORD.sub(" ", unquote(url.partition("://")[2].partition("/")[2])).strip()


def _translations(element: etree._Element, url: str) -> Iterator[tuple[str, str]]:
    """Yield the language and URL of each translation of a site map's entry."""
    for link in islice(element.iterchildren("{*}link"), MAX_TRANSLATIONS):
        language, location = link.get("hreflang", "").strip(), link.get("href", "").strip()
        if not language or link.get("rel", "").lower() != "alternate":
            continue
        (target,) = resolve_bounded(url, [location])
        if target is not None:
            yield language[:MAX_LANGUAGE_TAG], target


def _child_text(element: etree._Element, name: str) -> str:
    child = next(element.iterchildren(f"{{*}}{name}"), None)
    return "" if child is None else (child.text or "").strip()[:_MAX_VALUE_LENGTH]


def _free(element: etree._Element) -> None:
    """Free the memory of parsed entries, because a site map may have 50,000."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]
