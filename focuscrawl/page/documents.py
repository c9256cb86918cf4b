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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from lxml import etree

from focuscrawl.foundation import urls
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.urls import host, resolve
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.metadata import MAX_LANGUAGE_TAG, MAX_TRANSLATIONS, resolve_bounded
from focuscrawl.page.parse import MAX_LINKS, MAX_SIZE, MAX_TOKENS, count_within_limit
from focuscrawl.page.view import Links, PageView
from focuscrawl.page.walk import collapse_whitespace
from focuscrawl.page.words import tokenize

if TYPE_CHECKING:
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
_MAX_GZIP_MEMBERS = 1000
_GZIP_STEP = 4096  # bytes that are decompressed at once; before damage, single bytes
_MAX_UNPACKED = 50 * 1024 * 1024  # bytes, the limit of sitemaps.org
_MAX_PROLOGUE = 1024 * 1024  # bytes in which the root element is searched for
_BEFORE_BOM = re.compile(rb"\s+(?=\xef\xbb\xbf|\xff\xfe|\xfe\xff)")
_BOM_OR_SPACE = b"\xef\xbb\xbf \t\r\n"
_XML_DECLARATION = re.compile(rb"<\?xml\s")
# The start of XML and the name of its root element. Comments, instructions, text, and the elements
# of a warning of PHP may come first. Possessive quantifiers prevent backtracking.
_ROOT = re.compile(
    rb"""(?:<!--.*?--> | <\?.*?\?> | </?br?\s*/?> | [^<]++)*+
    (?P<xml>(?:<!doctype(?!\s+html)[^\[>]*+(?:\[.*?\]\s*)?>)?+ (?:<!--.*?--> | <\?.*?\?> | \s++)*+
    <(?:[\w.-]+:)?(?P<name>!doctype|[\w.-]+))""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_SITE_MAP_ROOTS = (b"urlset", b"sitemapindex")
_FEED_ROOTS = (b"feed", b"rss", b"rdf")
_HTML_ROOTS = (b"!doctype", b"html", b"head", b"body", b"title")
_TEXT_SITE_MAP = re.compile(rb"https?://[^\s<>]+[ \t]*(?:[\r\n]|\Z)", re.IGNORECASE)
_ENTRIES = ("url", "sitemap")
_BARE_AMPERSAND = re.compile(rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|&(?!#|\w{1,32};)", re.DOTALL)
_PUNCTUATION = re.compile(r"[\x00-/:-@\[-`{-\x7f]+")  # of ASCII; `tokenize` splits at the others


class UnreadableError(Exception):
    """The document is damaged or encrypted, or has no content of its type."""


class DocumentLink(NamedTuple):
    """A link of a document: normalised URL, link text, and index of the DOM leaf with the text."""

    url: str
    text: str
    leaf: int


def is_pdf(body: bytes) -> bool:
    """Return whether the first 1,024 bytes of a body have the signature of PDF."""
    return b"%PDF-" in body[:1024]


def url_list_kind(body: bytes) -> str | None:
    """Return the kind of a response that lists URLs (site map or feed); None for other responses.

    Returns
    -------
    str or None
        `SITE_MAP` for site maps, also in plain text, and for their indexes; `FEED` for feeds.
    """
    return _find_root(_to_utf8(body, _MAX_PROLOGUE))[0]


def _find_root(text: bytes) -> tuple[str | None, int]:
    """Return the kind of a list of URLs, and the offset of its XML; 0 for plain text."""
    declaration = _XML_DECLARATION.search(text)
    for start in (0, declaration.start() if declaration else 0):  # any text may come before it
        root = _ROOT.match(text, start)
        name = root["name"].lower() if root else b""
        if root and name in _SITE_MAP_ROOTS:
            return SITE_MAP, root.start("xml")
        if root and name in _FEED_ROOTS:
            return FEED, root.start("xml")
        if name in _HTML_ROOTS:
            return None, 0
    return SITE_MAP if _TEXT_SITE_MAP.match(text) else None, 0


def _to_utf8(body: bytes, max_bytes: int = _MAX_UNPACKED) -> bytes:
    """Return the start of a document in UTF-8, decompressed, without a byte order mark."""
    unpacked = decompress(body, max_bytes)
    mark = _BEFORE_BOM.match(unpacked)
    unpacked = unpacked[mark.end() if mark else 0 :]
    # UTF-16 without a byte order mark (XML 1.0, appendix F)
    encoding = {b"<\0": "utf-16le", b"\0<": "utf-16be"}.get(unpacked[:2])
    return to_utf8(unpacked, encoding)[0].lstrip(_BOM_OR_SPACE)


def _to_xml(text: bytes) -> bytes:
    """Return the XML of a document in UTF-8, without its declaration and text after the last tag.

    Ampersands that start no entity are escaped.
    """
    text = text[_find_root(text[:_MAX_PROLOGUE])[1] : text.rfind(b">") + 1]
    return _BARE_AMPERSAND.sub(lambda found: b"&amp;" if found[0] == b"&" else found[0], text)


def decompress(body: bytes, max_bytes: int = _MAX_UNPACKED) -> bytes:
    """Return the first `max_bytes` of a body; decompress the body if it is a gzip file."""
    if not body.startswith(_GZIP):
        return body[:max_bytes]
    unpacked = bytearray()
    member, members, step, at = zlib.decompressobj(31), 1, _GZIP_STEP, 0
    while at < len(body) and len(unpacked) < max_bytes:
        piece, before = body[at : at + step], member.copy()
        try:
            unpacked += member.decompress(piece, max_bytes - len(unpacked))
        except zlib.error:
            if step == 1:
                break
            member, step = before, 1
            continue
        at += len(piece) - len(member.unused_data)
        if member.eof:
            if not body.startswith(_GZIP, at) or members == _MAX_GZIP_MEMBERS:
                break
            member, members = zlib.decompressobj(31), members + 1
    return bytes(unpacked)


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
    return (_read_feed if kind == FEED else _read_site_map)(_to_utf8(body), url)


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


def _read_feed(text: bytes, url: str) -> PageView:
    """Return the URLs and titles of a feed's entries, latest first."""
    with require_extra("feeds", "reading feeds"):
        import feedparser  # noqa: PLC0415 - an extra
    # feedparser would open a text that is a file name or a URL, so it gets a file object
    xml = b'<?xml version="1.0" encoding="utf-8"?>' + _to_xml(text)
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
    """Text, links and metadata of a PDF file.

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
    """Return metadata, links and text of a PDF; the text is limited to 2 MiB.

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

    A date without a time zone is interpreted as UTC. The result for an invalid date is None.
    """
    missing = {4: "-01-01", 7: "-01"}.get(len(written), "")
    try:
        at = datetime.fromisoformat(written + missing)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _read_site_map(text: bytes, url: str) -> PageView:
    """Return the URLs of a site map, last modified first; their texts are the words of the URLs.

    URLs without a date come last, in the order of the file. ``xhtml:link`` elements with a
    ``hreflang`` become translations, not links.
    """
    found: dict[str, float] = {}
    translations: dict[str, str] = {}
    index = False
    entries = _text_entries(text) if _TEXT_SITE_MAP.match(text) else _xml_entries(_to_xml(text))
    try:
        for entry in entries:
            index |= entry.is_site_map
            target = resolve_bounded(url, [entry.location])[0]
            if target is not None and target not in found:
                at = parse_w3c_date(entry.modified)
                found[target] = -math.inf if at is None else at
            for language, location in entry.translations:
                (other,) = resolve_bounded(url, [location])
                if other is not None and len(translations) < MAX_LINKS:
                    translations.setdefault(other, language)
            if len(found) >= _MAX_SITE_MAP_ENTRIES:
                break
    except etree.XMLSyntaxError as error:
        if not found:
            raise UnreadableError(str(error)) from None
    if not found:
        raise UnreadableError("the site map has no URLs of pages")
    targets = sorted(found, key=lambda each: -found[each])
    texts = [_url_words(target) for target in targets]
    links = [DocumentLink(target, texts[at], at) for at, target in enumerate(targets)]
    kind = SITE_MAP_INDEX if index else SITE_MAP
    others = {other: tag for other, tag in translations.items() if other not in found}
    title = f"{kind} of {host(url)}"
    return _document_view(url, kind, title, texts, links, translations=others)


class _SiteMapEntry(NamedTuple):
    """An entry of a site map as written; translations are pairs of language and URL."""

    location: str
    modified: str = ""
    translations: Sequence[tuple[str, str]] = ()
    is_site_map: bool = False


def _text_entries(text: bytes) -> Iterator[_SiteMapEntry]:
    """Yield the URLs of a site map in plain text, which has one URL a line."""
    for line in text.splitlines():
        if _TEXT_SITE_MAP.match(line):
            yield _SiteMapEntry(line[: _MAX_VALUE_LENGTH + 1].decode().strip())


def _xml_entries(xml: bytes) -> Iterator[_SiteMapEntry]:
    """Yield the entries of a site map, whose elements may be in any case and namespace.

    Entities are not resolved, DTDs not loaded.
    """
    events = etree.iterparse(
        io.BytesIO(xml),
        events=("end",),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        recover=True,
        remove_comments=True,
        remove_pis=True,
    )
    for _, element in events:
        name = _local_name(element)
        if name not in _ENTRIES or _local_name(element.getparent()) in _ENTRIES:
            continue
        children = {_local_name(child): child for child in reversed(element)}
        location = children.get("loc", element)  # some site maps have no `loc` element
        if _text_of(location):
            yield _SiteMapEntry(
                _text_of(location),
                _text_of(children.get("lastmod")),
                [*_translations(element)],
                name == "sitemap",
            )
        _free(element)


def site_maps_in_robots(text: str, url: str) -> Iterator[str]:
    """Yield the URLs of all ``Sitemap`` lines of a robots.txt file."""
    for line in text.splitlines():
        field, _, value = line.partition("#")[0].partition(":")
        location = value.strip()[:_MAX_VALUE_LENGTH]
        if field.strip().lower() == "sitemap" and location:
            (target,) = resolve(url, [location])
            if target is not None:
                yield target


def _url_words(url: str) -> str:
    return _PUNCTUATION.sub(" ", unquote(url.partition("://")[2].partition("/")[2])).strip()


def _translations(entry: etree._Element) -> Iterator[tuple[str, str]]:
    """Yield the language and URL of each translation of a site map's entry."""
    links = (child for child in entry if _local_name(child) == "link")
    for link in islice(links, MAX_TRANSLATIONS):
        language, location = link.get("hreflang", "").strip(), link.get("href", "").strip()
        if language and location and link.get("rel", "").lower() == "alternate":
            yield language[:MAX_LANGUAGE_TAG], location


def _local_name(element: etree._Element | None) -> str:
    """Return the name of an element in lower case, without namespace and undeclared prefix."""
    return "" if element is None else _name_of_tag(str(element.tag))


@lru_cache(maxsize=256)  # a site map has few different tags
def _name_of_tag(tag: str) -> str:
    return tag.rpartition("}")[2].rpartition(":")[2].lower()


def _text_of(element: etree._Element | None) -> str:
    return "" if element is None else (element.text or "").strip()[:_MAX_VALUE_LENGTH]


def _free(element: etree._Element) -> None:
    """Free the memory of parsed entries, because a site map may have 50,000."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]
