"""A web whose pages change from version to version by a seeded random rule, for tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from lxml import etree

from focuscrawl.foundation.urls import resolve, schemeless
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.parse import ParseCost, estimate_cost
from focuscrawl.page.walk import parse_tree
from focuscrawl.webs.web_protocol import Answer, HtmlAnswer

if TYPE_CHECKING:
    from focuscrawl.webs.web_protocol import Web


NEVER = 1 << 30

LATE = 0.25  # share of the pages that are added after version 1 ...
# probabilities a version: that a late page is added, that a page is removed, and is moved
_ADDED, _REMOVED, _MOVED = 0.3, 0.02, 0.01
#: probabilities of an edit with each version, and the shares of pages with these probabilities:
#: most pages of the Web rarely change, some change constantly (Cho and Garcia-Molina, VLDB 2000)
EDITED = ((0.0, 0.5), (0.1, 0.25), (0.4, 0.15), (0.9, 0.1))

_FIRST_DATE = datetime(2025, 1, 6, tzinfo=UTC)
_INTERVAL = timedelta(days=7)  # between two versions
_NEW_WORDS = 30  # in the paragraph that an edit adds

_MOVED_FOLDER = "moved-here"  # first part of the path of a moved page
_GONE = b"<!doctype html><title>Not found</title><p>This page is not here any more."
_HTML = ("Content-Type", "text/html; charset=utf-8")


class ChangingWeb:
    """One version of a web whose pages are added, edited, moved and removed over time.

    Some pages of `web` exist only from a later version on; a link to such a page appears with the
    next edit of the linking page. A moved page has another URL on its host; the old URL redirects.
    A request for the URL of a removed page gets the status 404, and links to the page stay. HTML
    responses of the changing web have the headers ETag and Last-Modified. The constants of the
    module `changing_web` define how often pages change.

    Parameters
    ----------
    web : Web
        Source of the pages.
    version : int
        Version from 1; version 1 has no edited, moved or removed pages.
    random_state : int
        Webs with equal `web`, version and random state are equal in every byte.
    """

    def __init__(self, web: Web, version: int, random_state: int = 0) -> None:
        self._web = web
        self._timelines = PageTimelines(random_state)
        self.version = version
        self.name = f"{web.name}@{version}"
        content = f"changing web 1 {web.fingerprint} {version} {random_state}"
        self.fingerprint = blake2b(content.encode(), digest_size=16).hexdigest()

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Return each URL as spelled in this version of the web; None for missing URLs."""
        found: list[str | None] = []
        for url, own in zip(urls, self._web.resolve(urls), strict=True):
            if own is not None:
                found.append(own if self._timelines.of(own).added <= self.version else None)
                continue
            old = self._original_url(url)
            found.append(None if old is None else _moved(old))
        return found

    def fetch(self, url: str) -> Answer | None:
        """Return the response for a URL that `resolve` returned, or None."""
        answer = self._web.fetch(url)
        old = url
        if answer is None:
            before = self._original_url(url)
            answer = None if before is None else self._web.fetch(before)
            if before is None or answer is None:
                return None
            old = before
        timeline = self._timelines.of(old)
        if timeline.added > self.version:
            return None
        if timeline.removed <= self.version:
            return Answer(url, 404, [_HTML], _GONE)
        if old == url and timeline.moved <= self.version:
            return Answer(url, 301, [("Location", _moved(url))], b"")
        return _revised(answer, url, timeline, self.version, self._added_versions)

    def urls(self) -> Iterator[str]:
        """Yield the URL of every page of this version."""
        for url in self._web.urls():
            timeline = self._timelines.of(url)
            if timeline.added <= self.version < timeline.removed:
                yield _moved(url) if timeline.moved <= self.version else url

    def _added_versions(self, targets: Sequence[str | None]) -> list[int]:
        """Return the version in which each link target was added; 1 if unknown."""
        known = self._web.resolve([target or "" for target in targets])
        return [1 if url is None else self._timelines.of(url).added for url in known]

    def _original_url(self, url: str) -> str | None:
        """Return the URL of a moved page before its move; None if no page moved to `url`."""
        front, moved, path = url.partition(f"/{_MOVED_FOLDER}/")
        if not moved or front.count("/") > 2:
            return None
        old = self._web.resolve([f"{front}/{path}"])[0]
        return old if old is not None and self._timelines.of(old).moved <= self.version else None


class PageTimeline(NamedTuple):
    """The versions in which a page is added, edited, moved and removed.

    Attributes
    ----------
    added, removed, moved : int
        First versions with the page, without the page, and with its new URL; or `NEVER`.
    rate : float
        Probability of an edit with each version after `added`.
    key : int
        Seed of further random draws.
    """

    added: int
    removed: int
    moved: int
    rate: float
    key: int

    def edits(self, version: int) -> list[int]:
        """Return all versions up to `version` in which the page was added or edited."""
        steps = range(self.added + 1, version + 1)
        return [
            self.added,
            *(step for step in steps if hashed_fraction(self.key, step) < self.rate),
        ]


class PageTimelines:
    """The timelines (version histories) of all pages, computed from URL and random state."""

    def __init__(self, random_state: int) -> None:
        self._state = random_state
        self._known: dict[str, PageTimeline] = {}

    def of(self, url: str) -> PageTimeline:
        """Return the timeline of a page, given its URL with http or https."""
        timeline = self._known.get(url)
        if timeline is None:
            timeline = self._known[url] = self._draw(schemeless(url))
        return timeline

    def _draw(self, url: str) -> PageTimeline:
        digest = blake2b(f"{self._state} {url}".encode("utf-8", "replace"), digest_size=8)
        key = int.from_bytes(digest.digest(), "little")
        added = 1
        if hashed_fraction(key, -1) < LATE:
            added = 2 + _draw_geometric(hashed_fraction(key, -2), _ADDED)
        drawn, rate = hashed_fraction(key, -3), 0.0
        for rate, share in EDITED:  # noqa: B007 - the last rate if rounding leaves none
            drawn -= share
            if drawn < 0.0:
                break
        return PageTimeline(
            added=added,
            removed=added + 1 + _draw_geometric(hashed_fraction(key, -4), _REMOVED),
            moved=added + 1 + _draw_geometric(hashed_fraction(key, -5), _MOVED),
            rate=rate,
            key=key,
        )


def hashed_fraction(key: int, number: int) -> float:
    """Return a hash of the arguments as a number in [0, 1), which is equal on all machines."""
    digest = blake2b(f"{key} {number}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


def _draw_geometric(drawn: float, chance: float) -> int:
    """Return the number of failures before the first success (geometric distribution)."""
    return int(math.log1p(-drawn) / math.log1p(-chance))


def _revised(
    answer: Answer,
    url: str,
    timeline: PageTimeline,
    version: int,
    added_versions: Callable[[Sequence[str | None]], list[int]],
) -> Answer:
    """Return the response of a version instead of the recorded response.

    An edit adds a paragraph of the page's own words in another order, so the topic of the page
    does not change. Links to pages that were added after the last edit are removed. Responses
    that are not HTML pages stay unchanged.
    """
    page = HtmlAnswer.from_answer(answer)
    utf8 = b"" if page is None else to_utf8(page.body, page.encoding)[0]
    root = None if estimate_cost(utf8, ParseCost.LARGE) > ParseCost.LARGE else parse_tree(utf8)
    if root is None:
        return replace(answer, url=url)
    anchors = list(root.iter("a", "area"))
    targets = resolve(answer.url, [each.get("href") or "" for each in anchors])
    added = added_versions(targets)
    edits = timeline.edits(version)
    for anchor, first in zip(anchors, added, strict=True):
        if first > edits[-1]:
            _remove_link(anchor)
    if len(edits) > 1:
        _add_paragraph(root, timeline, len(edits) - 1)
    body = etree.tostring(root, method="html", encoding="utf-8", doctype="<!doctype html>")
    kept = [
        (name, value)
        for name, value in answer.headers
        if name.lower() not in {"content-type", "content-length", "etag", "last-modified"}
    ]
    own = [
        _HTML,
        ("ETag", f'"{blake2b(body, digest_size=8).hexdigest()}"'),
        ("Last-Modified", _date(edits[-1])),
    ]
    return Answer(url, 200, kept + own, body)


def _date(version: int) -> str:
    return format_datetime(_FIRST_DATE + (version - 1) * _INTERVAL, usegmt=True)


def _remove_link(element: etree._Element) -> None:
    """Remove an element, but not the text behind the element."""
    parent = element.getparent()
    if parent is None:
        return
    tail, before = element.tail or "", element.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + tail
    else:
        parent.text = (parent.text or "") + tail
    parent.remove(element)


def _add_paragraph(root: etree._Element, timeline: PageTimeline, revision: int) -> None:
    body = root.find("body")
    if body is None:
        return
    words = [word for text in body.itertext() for word in str(text).split()]
    if not words:
        return
    paragraph = etree.SubElement(body, "p")
    drawn = [
        words[int(hashed_fraction(timeline.key, 1000 * revision + i) * len(words))]
        for i in range(min(_NEW_WORDS, len(words)))
    ]
    paragraph.text = f"Revised {revision}: {' '.join(drawn)}"


def _moved(url: str) -> str:
    scheme, _, host, path = url.split("/", 3)
    return f"{scheme}//{host}/{_MOVED_FOLDER}/{path}"
