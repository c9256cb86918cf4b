"""What the header and elements of a page declare: type, base, canonical URL, robots, language."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from email.message import Message
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.urls import MAX_URL, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lxml import etree

    from focuscrawl.page.view import PageView


_HTML = ("text/html", "application/xhtml+xml")
_HTML_MARKERS = (b"<!doctype html", b"<html", b"<head", b"<title", b"<body")

# How files begin that servers call HTML for want of a better name: documents, pictures, archives.
_SIGNATURES = (
    *(b"%PDF-", b"%!PS-", b"\xd0\xcf\x11\xe0", b"{\\rtf"),
    *(b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"RIFF", b"OggS", b"ID3"),
    *(b"PK\x03\x04", b"\x1f\x8b", b"Rar!\x1a", b"7z\xbc\xaf", b"\x7fELF"),
)
# What no text has in it, whatever its encoding; ESC shifts between the sets of ISO-2022, and
# every excluded_language byte of UTF-16 may be a NUL.
_BINARY_BYTES = bytes(set(range(1, 32)) - set(b"\t\n\v\f\r\x1b"))
_MAX_BINARY_SHARE = 0.02
_SNIFFED_BYTES = 1024  # bytes that are looked at
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")

# "5; url=next.html" and its looser forms, as the WHATWG standard reads them. Digits are not given
# back: a million of them would be tried in half a trillion ways.
_REFRESH = re.compile(
    r"""\s*(\d*+)[\d.]*+\s*[;,\s]\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.*))""",
    re.IGNORECASE | re.DOTALL,
)
_FEEDS = ("application/rss+xml", "application/atom+xml")
_MAX_FEEDS = 10  # that are kept; more are made, not written
MAX_TRANSLATIONS = 100  #: of a page
_UNRESOLVABLE = "data:"  # resolves to no URL of the web
MAX_LANGUAGE_TAG = 35  #: characters of the name of a language (RFC 5646, section 4.4.1)
_MAX_REFRESHES = 16  # `meta` elements that are looked at; one is the rule
#: rules of X-Robots-Tag that have a value; another word before a colon names a crawler
_RULES_WITH_VALUE = frozenset(
    {"max-image-preview", "max-snippet", "max-video-preview", "unavailable_after"}
)

_MAX_FIELD_LENGTH = 20_000  # characters of a field that are looked at
_LINK = re.compile(r"<([^<>]*)>((?:\"[^\"]*\"|[^\"<,])*)")
_PARAMETER = re.compile(r";\s*([\w!#$&+.^`|~-]+)\*?\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]*))")

_MIN_WORDS = 20  # which tell little
_MAX_WORDS = 500  # that are looked at; a millisecond
_MIN_PROBABILITY = 0.5  # of what the words tell; less than that is names and numbers
_NO_LANGUAGE = "zxx"
_CODE_LENGTH = 2  # letters of the codes of ISO 639-1; names and lists look like one of the others
#: what one cannot tell by looking, or what is written the same
_LANGUAGE_ALIASES = {
    "nb": "no",
    "nn": "no",
    "yue": "zh",
    "wuu": "zh",
    "cmn": "zh",
    "iw": "he",
    "in": "id",
}


@lru_cache(maxsize=64)  # the servers of the Web write a handful
def read_content_type(header: str | None) -> tuple[str | None, str | None]:
    """Return the media type, lower-case and without parameters, and the charset of a header.

    Either is None where the header names none.
    """
    if header is None or not header.strip():
        return None, None
    message = Message()
    message["Content-Type"] = header.replace("\r", " ").replace("\n", " ")
    media_type = header.partition(";")[0].strip().lower() or None
    try:
        return media_type, message.get_content_charset()
    except (LookupError, TypeError, ValueError):  # a charset that is itself encoded, wrongly
        return media_type, None


def is_html(media_type: str | None, body: bytes = b"") -> bool:
    """Tell whether an answer is an HTML page.

    Parameters
    ----------
    media_type : as `read_content_type` returns it; where there is none the beginning of `body`
        decides
    body : if its beginning is known: what is not even text is no HTML, whatever it is called
    """
    if media_type is not None:
        return media_type in _HTML and not _is_binary(body[:_SNIFFED_BYTES])
    start = body[:_SNIFFED_BYTES].lower()
    return any(mark in start for mark in _HTML_MARKERS)


def _is_binary(start: bytes) -> bool:
    if start.startswith(_SIGNATURES):
        return True
    if start.startswith(_BOMS) or b"<\0" in start or b"\0<" in start:
        return False  # of UTF-16, any byte may be half a letter
    strange = len(start) - len(start.translate(None, _BINARY_BYTES))
    return strange > _MAX_BINARY_SHARE * len(start)


@dataclass(slots=True)
class Metadata:
    """Metadata as written, None or False where the page declares nothing.

    Attributes
    ----------
    refresh, refresh_delay : where a browser goes by itself, and after how many seconds
    noindex, nofollow : what robots are asked not to do
    feeds : where the page has feeds
    translations : where it is in excluded_language languages, and in which
    """

    base: str | None = None
    canonical: str | None = None
    refresh: str | None = None
    refresh_delay: float = 0.0
    noindex: bool = False
    nofollow: bool = False
    feeds: list[str] = field(default_factory=list)
    translations: list[tuple[str, str]] = field(default_factory=list)

    def add_robots_rules(self, rules: str) -> None:
        """Take in rules as in ``noindex, nofollow``; rules of several sources add up."""
        words = set(rules.lower().replace(",", " ").split())
        self.noindex |= not words.isdisjoint({"noindex", "none"})
        self.nofollow |= not words.isdisjoint({"nofollow", "none"})

    def add_robots_fields(self, fields: Iterable[str]) -> None:
        """Take in the X-Robots-Tag fields of an answer; rules for one named crawler are not ours.

        A name is followed by a colon, and all rules up to the next name are that crawler's.
        """
        for rules in fields:
            named = False
            for rule in rules.split(","):
                name, colon, rest = rule.partition(":")
                if colon and name.strip().lower() not in _RULES_WITH_VALUE:
                    named = name.strip() != "*"
                    rule = rest  # noqa: PLW2901
                if not named:
                    self.add_robots_rules(rule)


def read_metadata(elements: list[etree._Element]) -> Metadata:
    """Read the ``base``, ``link`` and ``meta`` elements of a page; the first of a kind wins.

    A refresh in a ``noscript`` is for who cannot run the scripts that make the page, and leads
    browsers nowhere.
    """
    found = Metadata()
    refreshes = []
    for element in elements:
        if element.tag == "meta":
            content, named = element.get("content"), element.get("http-equiv", "")
            if content is not None and named.strip().lower() == "refresh":
                refreshes.append((element, content))
            elif content is not None and element.get("name", "").strip().lower() == "robots":
                found.add_robots_rules(content)
            continue
        href = element.get("href")
        if href is None:
            continue
        if element.tag == "base":
            if found.base is None:
                found.base = href
            continue
        relations = element.get("rel", "").lower().split()
        if found.canonical is None and "canonical" in relations:
            found.canonical = href
        elif "alternate" in relations:
            _read_alternate(found, element, href)
    for meta, content in refreshes[:_MAX_REFRESHES]:
        if found.refresh is None:
            _read_refresh(found, meta, content)
    return found


def _read_alternate(found: Metadata, link: etree._Element, href: str) -> None:
    language = link.get("hreflang", "").strip()
    if link.get("type", "").strip().lower() in _FEEDS:
        if len(found.feeds) < _MAX_FEEDS:
            found.feeds.append(href)
    elif language and len(found.translations) < MAX_TRANSLATIONS:
        found.translations.append((language[:MAX_LANGUAGE_TAG], href))


def _read_refresh(found: Metadata, meta: etree._Element, content: str) -> None:
    match = _REFRESH.match(content)
    if match is None or next(meta.iterancestors("noscript"), None) is not None:
        return
    delay, *targets = match.groups()
    found.refresh = next(filter(None, targets), "").strip() or None
    found.refresh_delay = float(delay or 0)


def resolve_bounded(base: str, references: list[str]) -> list[str | None]:
    """Resolve references as `resolve` does, but for those that are longer than `MAX_URL`.

    They lead nowhere, whether they are as long as written, or only when they are resolved.
    """
    if max(map(len, references)) > MAX_URL:
        references = [each if len(each) <= MAX_URL else _UNRESOLVABLE for each in references]
    found = resolve(base, references)
    if max(map(len, filter(None, found)), default=0) > MAX_URL:
        found = [None if url is not None and len(url) > MAX_URL else url for url in found]
    return found


def translations_in_headers(fields: Iterable[str], url: str) -> list[tuple[str, str]]:
    """Return where a page is in other languages, by ``rel=alternate`` with ``hreflang``.

    Parameters
    ----------
    fields : values of its Link header fields
    url : of the page

    Returns
    -------
    LanguageFilter as written, and URLs
    """
    found = []
    for reference, language in _parse_link_fields(fields):
        (target,) = resolve_bounded(url, [reference])
        if target is not None:
            found.append((language[:MAX_LANGUAGE_TAG], target))
        if len(found) >= MAX_TRANSLATIONS:
            break
    return found


def _parse_link_fields(fields: Iterable[str]) -> Iterator[tuple[str, str]]:
    for each in fields:
        for reference, written in _LINK.findall(each[:_MAX_FIELD_LENGTH]):
            parameters: dict[str, str] = {}
            for name, quoted, plain in _PARAMETER.findall(written):
                parameters.setdefault(name.lower(), (quoted or plain).strip())  # the first counts
            if "alternate" in parameters.get("rel", "").lower().split() and parameters.get(
                "hreflang"
            ):
                yield reference.strip(), parameters["hreflang"]


class LanguageFilter:
    """Some languages, and which pages are in another one.

    Parameters
    ----------
    codes : of ISO 639-1; none: all languages

    Raises
    ------
    UserError
        A language cannot be detected, or the detector is not installed.
    """

    def __init__(self, codes: Iterable[str] = ()) -> None:
        self._codes = frozenset(_LANGUAGE_ALIASES.get(code, code) for code in codes)
        known = set(_detector().labels) if self._codes else set()
        for code in sorted(self._codes - known):
            raise UserError(
                f"languages: {code} is none that can be told; codes are those of ISO 639-1, "
                "as in en, de, fr, ja"
            )

    def excluded_language(self, view: PageView) -> str | None:
        """Return the language of a page that is in none of these; None: it is, or is unknown.

        Its words decide where there are enough of them; templates declare pages in all languages
        that they are in English.
        """
        if not self._codes:
            return None
        found, _ = _detect(view.tokens[:_MAX_WORDS], view.language)
        return None if not found or found in self._codes else found


def detect_language(text: str, declared: str = "") -> tuple[str, float]:
    """Return the language of a text, and how probable that is by its words.

    Parameters
    ----------
    declared : tag of the language that its page names, which counts where the words are too few

    Returns
    -------
    Code of ISO 639-1 and a probability; an empty code: unknown; 0: the page declares it
    """
    return _detect(text.split(None, _MAX_WORDS)[:_MAX_WORDS], declared)


def _detect(words: list[str], declared: str) -> tuple[str, float]:
    if len(words) >= _MIN_WORDS:
        language, probability = _detector().classify(" ".join(words))
        if probability >= _MIN_PROBABILITY and language != _NO_LANGUAGE:
            return primary_subtag(language), float(probability)
    return primary_subtag(declared), 0.0


def primary_subtag(tag: str) -> str:
    """Return the language that a tag such as en-GB begins with (RFC 5646); empty: none."""
    code = tag.strip().lower().replace("_", "-").partition("-")[0]
    return _LANGUAGE_ALIASES.get(code, code) if 2 <= len(code) <= 3 and code.isalpha() else ""


@cache
def _detector() -> Any:
    with needs("languages", "telling the language of pages"):
        from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415
    detector = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    short = [code for code in detector.labels if len(code) == _CODE_LENGTH]
    detector.set_languages([*short, _NO_LANGUAGE])
    return detector
