"""Reads metadata of a page, such as the canonical URL, from headers and elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.urls import MAX_URL_LENGTH, resolve, resolve_header
from focuscrawl.page.content_type import can_be_html, read_content_type
from focuscrawl.page.robots_rules import DEFAULT_AGENT
from focuscrawl.page.words import count_spaceless, count_words

if TYPE_CHECKING:
    from lxml import etree

    from focuscrawl.page.view import PageView


# "5; url=next.html" and its variants in the WHATWG standard. Possessive quantifiers prevent
# backtracking, which would take quadratic time for a million digits.
_REFRESH = re.compile(
    r"""\s*(\d*+)[\d.]*+\s*[;,\s]\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.*))""",
    re.IGNORECASE | re.DOTALL,
)
_FEEDS = ("application/rss+xml", "application/atom+xml")
_MAX_FEEDS = 10  # of a page; only generated pages have more
MAX_TRANSLATIONS = 100  #: of a page
_UNRESOLVABLE = "data:"  # does not resolve to an http(s) URL
MAX_LANGUAGE_TAG = 35  #: characters of a language tag (RFC 5646, section 4.4.1)
_MAX_REFRESHES = 16  # `meta` elements that are examined; pages usually have one

_MAX_FIELD_LENGTH = 20_000  # characters of a header field that are read
_LINK = re.compile(r"<([^<>]*)>((?:\"[^\"]*\"|[^\"<,])*)")
_PARAMETER = re.compile(r";\s*([\w!#$&+.^`|~-]+)\*?\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]*))")

# relation types of other pages (IANA, "Link Relations"). Types of resources of this page, such as
# ``stylesheet``, and of services, such as ``pingback``, are not links.
_PAGE_RELATIONS = frozenset(
    {
        *("next", "prev", "previous", "first", "last", "up", "start", "index", "contents", "toc"),
        *("chapter", "section", "subsection", "appendix", "glossary", "help", "item"),
        *("collection", "related", "author", "about", "alternate", "archives", "bookmark"),
        *("latest-version", "predecessor-version", "successor-version", "version-history"),
        *("prefetch", "preload", "prerender"),
    }
)
_MAX_HEADER_LINKS = 100  # of a page
#: names of the header fields that have links to other pages, or tell about them
LINK_FIELDS = ("Link", "Content-Location", "TCN", "Refresh")

_MIN_WORDS = 20  # with fewer words, detection is unreliable
_MAX_WORDS = 500  # that are examined, which takes a millisecond
_MAX_EXAMINED = 10_000  # characters of these words
_MIN_PROBABILITY = 0.5  # of a detected language; names and numbers have less
_NO_LANGUAGE = "zxx"
_CODE_LENGTH = 2  # letters of a code of ISO 639-1; detection of other languages is unreliable
#: outdated codes, and languages that share a written form or that the detector confuses
_LANGUAGE_ALIASES = {
    "nb": "no",
    "nn": "no",
    "yue": "zh",
    "wuu": "zh",
    "cmn": "zh",
    "iw": "he",
    "in": "id",
}


@dataclass(slots=True)
class Metadata:
    """Metadata that a page declares, with unresolved URL references.

    Attributes
    ----------
    refresh, refresh_delay : target of ``<meta http-equiv=refresh>``, and its delay in seconds
    robots : rules for robots
    feeds : references to feeds of the page
    translations : languages of translations, and references to the translations
    """

    base: str | None = None
    canonical: str | None = None
    refresh: str | None = None
    refresh_delay: float = 0.0
    robots: list[str] = field(default_factory=list)
    feeds: list[str] = field(default_factory=list)
    translations: list[tuple[str, str]] = field(default_factory=list)


def read_metadata(elements: list[etree._Element], agent: str = DEFAULT_AGENT) -> Metadata:
    """Read metadata from the ``base``, ``link`` and ``meta`` elements of a page.

    The result contains only robots rules that apply to `agent` or to all crawlers. A ``<meta
    http-equiv=refresh>`` inside ``noscript`` is ignored, as in browsers.
    """
    found = Metadata()
    refreshes = []
    robots = {"robots", agent} - {""}
    for element in elements:
        if element.tag == "meta":
            content, named = element.get("content"), element.get("http-equiv", "")
            if content is not None and named.strip().lower() == "refresh":
                refreshes.append((element, content))
            elif content is not None and element.get("name", "").strip().lower() in robots:
                found.robots.append(content)
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
    if next(meta.iterancestors("noscript"), None) is None:
        found.refresh, found.refresh_delay = _parse_refresh(content)


def _parse_refresh(content: str) -> tuple[str | None, float]:
    """Return the target and the delay in seconds of a refresh."""
    match = _REFRESH.match(content)
    if match is None:
        return None, 0.0
    delay, *targets = match.groups()
    return next(filter(None, targets), "").strip() or None, float(delay or 0)


def resolve_bounded(base: str, references: list[str], encoding: str = "utf-8") -> list[str | None]:
    """Resolve URL references; the result is None for invalid URLs and for overlong URLs."""
    if max(map(len, references)) > MAX_URL_LENGTH:
        references = [
            each if len(each) <= MAX_URL_LENGTH else _UNRESOLVABLE for each in references
        ]
    found = resolve(base, references, encoding)
    if max(map(len, filter(None, found)), default=0) > MAX_URL_LENGTH:
        found = [None if url is not None and len(url) > MAX_URL_LENGTH else url for url in found]
    return found


class HeaderLinks(NamedTuple):
    """Links in the header fields of a response.

    Attributes
    ----------
    references : URLs in ``Link``, ``Content-Location`` and ``Refresh`` that are other pages
    refresh, refresh_delay : target of ``Refresh``, and its delay in seconds
    """

    references: tuple[str, ...] = ()
    refresh: str | None = None
    refresh_delay: float = 0.0


def read_header_links(url: str, headers: Iterable[tuple[str, str]]) -> HeaderLinks:
    """Read the URLs that the header fields of a response link to.

    The ``Content-Location`` of a negotiated response (RFC 2295, ``TCN``) is not read, because it
    is the URL of a variant of the same page.

    Parameters
    ----------
    url : URL of the response
    headers : names and values of header fields, decoded as Latin-1
    """
    fields: dict[str, list[str]] = {name.lower(): [] for name in LINK_FIELDS}
    for name, value in headers:
        if name.lower() in fields and value.strip():
            fields[name.lower()].append(value)
    if not any(fields.values()):
        return HeaderLinks()
    found = [
        reference
        for reference, parameters in _parse_link_fields(fields["link"])
        if _leads_to_page(parameters)
    ]
    if not fields["tcn"]:
        found += fields["content-location"][:1]
    refresh, delay = _parse_refresh("".join(fields["refresh"][:1]))
    target = None if refresh is None else _resolve_field(url, refresh)
    urls = dict.fromkeys(_resolve_field(url, each) for each in found[:_MAX_HEADER_LINKS])
    references = [each for each in [*urls, target] if each is not None and each != url]
    return HeaderLinks(tuple(dict.fromkeys(references)), target, delay)


def _leads_to_page(parameters: Mapping[str, str]) -> bool:
    """Return whether the target of a ``Link`` field is another page, by its parameters."""
    if "as" in parameters or "anchor" in parameters:  # a resource; a link of another page
        return False
    if not can_be_html(read_content_type(parameters.get("type"))[0]):
        return False
    relations = set(parameters.get("rel", "").lower().split())
    if parameters.get("hreflang"):
        relations.discard("alternate")  # a translation, see `translations_in_headers`
    return "nofollow" not in relations and not _PAGE_RELATIONS.isdisjoint(relations)


def _resolve_field(url: str, reference: str) -> str | None:
    found = resolve_header(url, reference[:_MAX_FIELD_LENGTH])
    return None if found is None or len(found) > MAX_URL_LENGTH else found


def translations_in_headers(fields: Iterable[str], url: str) -> list[tuple[str, str]]:
    """Return the language tags and URLs of translations that Link header fields declare.

    Parameters
    ----------
    fields : values of the Link header fields of a page
    url : URL of the page
    """
    found = []
    for reference, parameters in _parse_link_fields(fields):
        language = parameters.get("hreflang", "")
        if not language or "alternate" not in parameters.get("rel", "").lower().split():
            continue
        target = _resolve_field(url, reference)
        if target is not None:
            found.append((language[:MAX_LANGUAGE_TAG], target))
        if len(found) >= MAX_TRANSLATIONS:
            break
    return found


def _parse_link_fields(fields: Iterable[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the reference and the parameters of each link."""
    for each in fields:
        for reference, written in _LINK.findall(each[:_MAX_FIELD_LENGTH]):
            parameters: dict[str, str] = {}
            for name, quoted, plain in _PARAMETER.findall(written):
                # the first value of a parameter counts
                parameters.setdefault(name.lower(), (quoted or plain).strip())
            yield reference.strip(), parameters


class LanguageFilter:
    """Detects pages in languages that a crawl excludes.

    Parameters
    ----------
    codes : codes of ISO 639-1 of the allowed languages; empty to allow all languages

    Raises
    ------
    UserError
        If a language cannot be detected, or the detector is not installed.
    """

    def __init__(self, codes: Iterable[str] = ()) -> None:
        self._codes = frozenset(_LANGUAGE_ALIASES.get(code, code) for code in codes)
        known = set(_detector().labels) if self._codes else set()
        for code in sorted(self._codes - known):
            raise UserError(
                f"languages: {code} cannot be detected; give codes of ISO 639-1 such as en, de, "
                "fr, ja"
            )

    def excluded_language(self, view: PageView) -> str | None:
        """Return the language of a page if the crawl excludes this language, or None otherwise.

        The language detected from the page's words has priority over the declared language,
        because many templates declare English for pages in any language.
        """
        if not self._codes:
            return None
        found, _ = _detect(view.tokens[:_MAX_WORDS], view.language)
        return None if not found or found in self._codes else found


def detect_language(text: str, declared: str = "") -> tuple[str, float]:
    """Return the language of a text as an ISO 639-1 code, and the probability of the language.

    Parameters
    ----------
    declared : language tag of the page, used with probability 0 if the text has too few words
    """
    return _detect(text[:_MAX_EXAMINED].split(None, _MAX_WORDS)[:_MAX_WORDS], declared)


def _detect(words: list[str], declared: str) -> tuple[str, float]:
    text = " ".join(words)[:_MAX_EXAMINED]
    # a character of a script without spaces says as much as a word
    if max(count_words(text), count_spaceless(text)) >= _MIN_WORDS:
        language, probability = _detector().classify(text)
        if probability >= _MIN_PROBABILITY and language != _NO_LANGUAGE:
            return primary_subtag(language), float(probability)
    return primary_subtag(declared), 0.0


def primary_subtag(tag: str) -> str:
    """Return the language code of a tag, such as en for en-GB; empty for invalid tags."""
    code = tag.strip().lower().replace("_", "-").partition("-")[0]
    return _LANGUAGE_ALIASES.get(code, code) if 2 <= len(code) <= 3 and code.isalpha() else ""


@cache
def _detector() -> Any:
    with require_extra("languages", "detecting the language of pages"):
        from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415
    detector = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    short = [code for code in detector.labels if len(code) == _CODE_LENGTH]
    detector.set_languages([*short, _NO_LANGUAGE])
    return detector
