"""`ChangingWeb`: version 1, 2, 3, ... of a web whose pages change, by a seeded rule."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from lxml import etree

from focuscrawl.foundation.urls import resolve
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.parse import ParseCost, estimate_cost
from focuscrawl.page.walk import parse_tree
from focuscrawl.webs.warc_index import schemeless
from focuscrawl.webs.web_protocol import Answer, HtmlAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from focuscrawl.webs.web_protocol import Web


NEVER = 1 << 30

LATE = 0.25  # share of the pages that come after version 1 ...
_COMES = 0.3  # ... of those still to come, with each version
_GOES = 0.02  # chance of a page to be removed, with each version
_MOVES = 0.01
#: chances to be edited with a version, and the shares of pages that have them: most pages of the
#: Web hardly ever change, some all the time (Cho and Garcia-Molina, VLDB 2000)
EDITED = ((0.0, 0.5), (0.1, 0.25), (0.4, 0.15), (0.9, 0.1))

_FIRST = datetime(2025, 1, 6, tzinfo=UTC)
_STEP = timedelta(days=7)  # from version to version
_NEW_WORDS = 30  # of an edit

_MOVED = "moved-here"  # first part of the path of a page that has moved
_GONE = b"<!doctype html><title>Not found</title><p>This page is not here any more."
_HTML = ("Content-Type", "text/html; charset=utf-8")


class ChangingWeb:
    """One version of a web whose pages come, change, move and go (a `Web`).

    Pages are those of `web`; some of them come only with a later version, and links to them with
    the next edit of the pages that hold them. A page may be edited; move to another URL of its
    host, which the old one redirects to; or be removed, which its URL answers 404 from then on,
    while the links to it stay. HTML is served with ETag and Last-Modified.
    `focuscrawl.webs.changing_web` has the rates.

    Parameters
    ----------
    web : what it is made of
    version : from 1, where nothing was edited, moved or removed yet
    random_state : two of one web, version and state are the same to the byte
    """

    def __init__(self, web: Web, version: int, random_state: int = 0) -> None:
        self._web = web
        self._lives = Lives(random_state)
        self.version = version
        self.name = f"{web.name}@{version}"
        content = f"changing web 1 {web.fingerprint} {version} {random_state}"
        self.fingerprint = blake2b(content.encode(), digest_size=16).hexdigest()

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Map URLs to those of this version; what was removed is known, what is to come is not."""
        found: list[str | None] = []
        for url, own in zip(urls, self._web.resolve(urls), strict=True):
            if own is not None:
                found.append(own if self._lives.of(own).born <= self.version else None)
                continue
            old = self._before_moving(url)
            found.append(None if old is None else _moved(old))
        return found

    def fetch(self, url: str) -> Answer | None:
        """Return the answer for a URL that `resolve` returned; None if there is none."""
        answer = self._web.fetch(url)
        old = url
        if answer is None:
            before = self._before_moving(url)
            answer = None if before is None else self._web.fetch(before)
            if before is None or answer is None:
                return None
            old = before
        life = self._lives.of(old)
        if life.born > self.version:
            return None
        if life.removed <= self.version:
            return Answer(url, 404, [_HTML], _GONE)
        if old == url and life.moved <= self.version:
            return Answer(url, 301, [("Location", _moved(url))], b"")
        return _revised(answer, url, life, self.version, self._births)

    def urls(self) -> Iterator[str]:
        """Iterate over the URL of every page there is."""
        for url in self._web.urls():
            life = self._lives.of(url)
            if life.born <= self.version < life.removed:
                yield _moved(url) if life.moved <= self.version else url

    def _births(self, targets: Sequence[str | None]) -> list[int]:
        """Return the versions that the pages behind links come with; 1 where nothing is known."""
        known = self._web.resolve([target or "" for target in targets])
        return [1 if url is None else self._lives.of(url).born for url in known]

    def _before_moving(self, url: str) -> str | None:
        """Return where the page was that is at `url` since it moved; None if none is."""
        front, moved, path = url.partition(f"/{_MOVED}/")
        if not moved or front.count("/") > 2:
            return None
        old = self._web.resolve([f"{front}/{path}"])[0]
        return old if old is not None and self._lives.of(old).moved <= self.version else None


class Life(NamedTuple):
    """The versions of a changing web that a page comes, changes, moves and goes with.

    Attributes
    ----------
    born, removed, moved : versions from which on it is there, is gone, is elsewhere; `NEVER`
    rate : chance of an edit with each version after `born`
    key : for further draws
    """

    born: int
    removed: int
    moved: int
    rate: float
    key: int

    def edits(self, version: int) -> list[int]:
        """Return the versions, up to one, that brought the page as it is: its first and edits."""
        steps = range(self.born + 1, version + 1)
        return [self.born, *(step for step in steps if fraction(self.key, step) < self.rate)]


class Lives:
    """The lives of all pages, each a function of its URL and the random state."""

    def __init__(self, random_state: int) -> None:
        self._state = random_state
        self._known: dict[str, Life] = {}

    def of(self, url: str) -> Life:
        """Return the life of the page at a normalised URL, whatever its scheme."""
        life = self._known.get(url)
        if life is None:
            life = self._known[url] = self._draw(schemeless(url))
        return life

    def _draw(self, url: str) -> Life:
        digest = blake2b(f"{self._state} {url}".encode("utf-8", "replace"), digest_size=8)
        key = int.from_bytes(digest.digest(), "little")
        born = 1
        if fraction(key, -1) < LATE:
            born = 2 + _waits(fraction(key, -2), _COMES)
        drawn, rate = fraction(key, -3), 0.0
        for rate, share in EDITED:  # noqa: B007 - the last one if none was drawn
            drawn -= share
            if drawn < 0.0:
                break
        return Life(
            born=born,
            removed=born + 1 + _waits(fraction(key, -4), _GOES),
            moved=born + 1 + _waits(fraction(key, -5), _MOVES),
            rate=rate,
            key=key,
        )


def fraction(key: int, number: int) -> float:
    """Return a number in [0, 1) that is a function of two, the same on every machine."""
    digest = blake2b(f"{key} {number}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


def _waits(drawn: float, chance: float) -> int:
    """Return how many versions something waits that has a chance with each (geometric)."""
    return int(math.log1p(-drawn) / math.log1p(-chance))


def _revised(
    answer: Answer,
    url: str,
    life: Life,
    version: int,
    births: Callable[[Sequence[str | None]], list[int]],
) -> Answer:
    """Return what a version answers in place of what was recorded.

    An edit adds a paragraph of the page's own words in another order, so that the page stays on
    its topic, and links to the pages that have come: links to pages that had not come with the
    last edit are left out. What is no page is left as it is. `births` gives the versions that the
    targets of links come with.
    """
    page = HtmlAnswer.of(answer)
    utf8 = b"" if page is None else to_utf8(page.body, page.encoding)[0]
    root = None if estimate_cost(utf8, ParseCost.LARGE) > ParseCost.LARGE else parse_tree(utf8)
    if root is None:
        return replace(answer, url=url)
    anchors = list(root.iter("a", "area"))
    targets = resolve(answer.url, [each.get("href") or "" for each in anchors])
    born = births(targets)
    edits = life.edits(version)
    for anchor, first in zip(anchors, born, strict=True):
        if first > edits[-1]:
            _drop(anchor)
    if len(edits) > 1:
        _add_paragraph(root, life, len(edits) - 1)
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
    return format_datetime(_FIRST + (version - 1) * _STEP, usegmt=True)


def _drop(element: etree._Element) -> None:
    """Remove an element, but not the text behind it."""
    parent = element.getparent()
    if parent is None:
        return
    tail, before = element.tail or "", element.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + tail
    else:
        parent.text = (parent.text or "") + tail
    parent.remove(element)


def _add_paragraph(root: etree._Element, life: Life, revision: int) -> None:
    body = root.find("body")
    if body is None:
        return
    words = [word for text in body.itertext() for word in str(text).split()]
    if not words:
        return
    paragraph = etree.SubElement(body, "p")
    drawn = [
        words[int(fraction(life.key, 1000 * revision + i) * len(words))]
        for i in range(min(_NEW_WORDS, len(words)))
    ]
    paragraph.text = f"Revised {revision}: {' '.join(drawn)}"


def _moved(url: str) -> str:
    scheme, _, host, path = url.split("/", 3)
    return f"{scheme}//{host}/{_MOVED}/{path}"
