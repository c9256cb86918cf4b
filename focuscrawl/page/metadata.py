"""What a page says about itself: base, canonical URL, refresh, robots."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml import etree

# "5; url=next.html" and its looser forms, as the WHATWG standard reads them.
_REFRESH = re.compile(
    r"""\s*[\d.]*\s*[;,\s]\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.*))""",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(slots=True)
class Metadata:
    """Metadata as written, None or False where the page does not say."""

    base: str | None = None
    canonical: str | None = None
    refresh: str | None = None
    noindex: bool = False
    nofollow: bool = False


def read_metadata(elements: list[etree._Element]) -> Metadata:
    """Read the ``base``, ``link`` and ``meta`` elements of a page; the first of a kind wins.

    Robots rules add up: a page that says noindex once means it.
    """
    found = Metadata()
    for element in elements:
        if element.tag == "meta":
            _read_meta(found, element)
            continue
        href = element.get("href")
        if href is None:
            continue
        if element.tag == "base":
            if found.base is None:
                found.base = href
        elif found.canonical is None and "canonical" in element.get("rel", "").lower().split():
            found.canonical = href
    return found


def _read_meta(found: Metadata, meta: etree._Element) -> None:
    content = meta.get("content")
    if content is None:
        return
    if meta.get("http-equiv", "").strip().lower() == "refresh":
        match = _REFRESH.match(content)
        if match and found.refresh is None:
            found.refresh = next((part for part in match.groups() if part), "").strip() or None
    elif meta.get("name", "").strip().lower() == "robots":
        rules = set(content.lower().replace(",", " ").split())
        found.noindex |= not rules.isdisjoint({"noindex", "none"})
        found.nofollow |= not rules.isdisjoint({"nofollow", "none"})
