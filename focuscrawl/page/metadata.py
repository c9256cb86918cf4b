"""What a page says about itself: base, canonical URL, refresh, what robots may do with it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lxml import etree

# "5; url=next.html" and its looser forms, as the WHATWG standard reads them. Digits are not given
# back: a million of them would be tried in half a trillion ways.
_REFRESH = re.compile(
    r"""\s*(\d*+)[\d.]*+\s*[;,\s]\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.*))""",
    re.IGNORECASE | re.DOTALL,
)
_FEEDS = ("application/rss+xml", "application/atom+xml")
_MAX_FEEDS = 10  # that are kept; more are made, not written
MAX_TRANSLATIONS = 100  #: of a page
MAX_TAG = 35  #: characters of the name of a language (RFC 5646, section 4.4.1)
_MAX_REFRESHES = 16  # `meta` elements that are looked at; one is the rule
#: rules of X-Robots-Tag that have a value; another word before a colon names a crawler
_VALUED = frozenset({"max-image-preview", "max-snippet", "max-video-preview", "unavailable_after"})


@dataclass(slots=True)
class Metadata:
    """Metadata as written, None or False where the page does not say.

    Attributes
    ----------
    refresh, refresh_delay : where a browser goes by itself, and after how many seconds
    noindex, nofollow : what robots are asked not to do
    feeds : where the page has feeds
    translations : where it is in other languages, and in which
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
        """Take in rules as in ``noindex, nofollow``; they add up, whoever says them."""
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
                if colon and name.strip().lower() not in _VALUED:
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
        found.translations.append((language[:MAX_TAG], href))


def _read_refresh(found: Metadata, meta: etree._Element, content: str) -> None:
    match = _REFRESH.match(content)
    if match is None or next(meta.iterancestors("noscript"), None) is not None:
        return
    delay, *targets = match.groups()
    found.refresh = next(filter(None, targets), "").strip() or None
    found.refresh_delay = float(delay or 0)
