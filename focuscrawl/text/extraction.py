"""The main text of one page, and its metadata, by a library that is kept for that."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from focuscrawl.foundation.extras import needs
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.language import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXTRACTORS = ("trafilatura", "resiliparse")
VISIBLE = "visible text"  #: extractor of a text where these found nothing

LONGEST = 1_000_000  #: characters of a text; what is longer is cut
_MOST = 4_000_000  # bytes, as UTF-8, of a page that are looked at
_FIELD = 1_000  # characters of what a page says of itself
_FEW = 10  # words: less is no text


@dataclass(frozen=True)
class PageText:
    """What is taken home of a page.

    Attributes
    ----------
    text, markdown : main text without and with headings, lists and emphasis; empty: none found
    title, description, author : as the page says; empty: it does not
    date : it was published, or changed; None: unknown
    language : code of ISO 639-1 by the words of `text`, else as the page says; empty: unknown
    confidence : probability of the language by the words; 0 if the page says so alone
    canonical : URL that it names as its own; empty: none
    license : URL or name of a licence that it links to as such; empty: none
    kind : type of its JSON-LD or Open Graph, as Article; empty: none
    extractor : library that found the text, or `VISIBLE`
    """

    text: str
    markdown: str
    title: str
    description: str
    author: str
    date: date | None
    language: str
    confidence: float
    canonical: str
    license: str
    kind: str
    extractor: str

    def map(self, change: Callable[[str], str]) -> PageText:
        """Return the same with every text changed."""
        texts: dict[str, Any] = {
            name: change(value) for name, value in vars(self).items() if isinstance(value, str)
        }
        return replace(self, **texts)


def extract_text(
    body: bytes, url: str, *, encoding: str | None = None, extractor: str = EXTRACTORS[0]
) -> PageText:
    """Take the main text out of an HTML page.

    Where the library finds nothing, which is no proof that there is nothing, all visible text of
    the page is taken.

    Parameters
    ----------
    body, url, encoding : of the page; the encoding as ``Content-Type`` has it
    extractor : one of `EXTRACTORS`; metadata is read by trafilatura either way

    Raises
    ------
    UserError
        The libraries are not installed.
    """
    with needs("text", "taking text home"):
        import lxml_html_clean  # noqa: F401, PLC0415 - in vain without it, see pyproject.toml
        from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415
        from resiliparse.parse.html import HTMLTree  # noqa: PLC0415
        from trafilatura import bare_extraction  # noqa: PLC0415
        from trafilatura.metadata import extract_metadata  # noqa: PLC0415
        from trafilatura.xml import xmltotxt  # noqa: PLC0415
    html = to_utf8(body, encoding, _MOST)[0].decode()
    text = markdown = ""
    found: Any = None
    if extractor == "trafilatura":
        found = bare_extraction(
            html,
            url=url,
            favor_recall=True,
            fast=True,
            include_comments=False,
            with_metadata=True,
            include_formatting=True,
            output_format="markdown",
        )
        if found is not None:
            markdown = xmltotxt(found.body, include_formatting=True)
            text = xmltotxt(found.body, include_formatting=False)
    if found is None:
        found = extract_metadata(html, default_url=url)
        if extractor == "resiliparse":
            text = extract_plain_text(html, main_content=True, alt_texts=False, list_bullets=False)
            markdown = extract_plain_text(html, main_content=True, alt_texts=False)
    used = extractor
    if len(text.split()) < _FEW:
        visible = extract_plain_text(html, main_content=False, alt_texts=False)
        if len(visible.split()) > len(text.split()):
            text, markdown, used = visible, visible, VISIBLE
    text, markdown = text[:LONGEST].strip(), markdown[:LONGEST].strip()
    tree = HTMLTree.parse(html)
    root = tree.document.query_selector("html") if tree.document is not None else None
    said = "" if root is None else root.getattr("lang") or ""
    language, confidence = tell(text, said)
    return PageText(
        text=text,
        markdown=markdown,
        title=_field(found.title),
        description=_field(found.description),
        author=_field(found.author),
        date=_date(found.date),
        language=language,
        confidence=round(confidence, 4),
        canonical=_resolved(_canonical(tree), url),
        license=_resolved(_license(tree) or _field(found.license), url),
        kind=_kind(tree) or _field(found.pagetype),
        extractor=used,
    )


def _field(value: object) -> str:
    return " ".join(value.split())[:_FIELD] if isinstance(value, str) else ""


def _date(value: object) -> date | None:
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def _resolved(reference: str, url: str) -> str:
    """Return where a reference from the root or of another host leads; others as they are."""
    if not reference.startswith("/"):
        return reference
    try:
        return urljoin(url, reference)[:_FIELD]
    except ValueError:
        return ""


def _canonical(tree: Any) -> str:
    link = tree.document.query_selector("link[rel=canonical]")
    return "" if link is None else _field(link.getattr("href"))


def _license(tree: Any) -> str:
    link = tree.document.query_selector("a[rel~=license], link[rel~=license]")
    return "" if link is None else _field(link.getattr("href"))


def _kind(tree: Any) -> str:
    for script in tree.document.query_selector_all('script[type="application/ld+json"]'):
        try:
            found = json.loads(script.text[:_MOST])
        except (ValueError, RecursionError):
            continue
        for each in _types(found):
            return _field(each)
    meta = tree.document.query_selector('meta[property="og:type"]')
    return "" if meta is None else _field(meta.getattr("content"))


def _types(found: object) -> Iterator[str]:
    if isinstance(found, list):
        found = found[0] if found else None
    if isinstance(found, dict):
        kind = found.get("@type")
        if isinstance(kind, list):
            kind = kind[0] if kind else None
        if isinstance(kind, str):
            yield kind
        elif isinstance(found.get("@graph"), list):
            yield from _types(found["@graph"][:1])
