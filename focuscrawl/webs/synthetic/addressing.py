"""Addresses: which URLs the web answers, decided by reading the URL.

========================================  =============================================
``/``  ``/about.html``  ``/privacy.html``  pages outside the sections
``/cycling-guides/``                       hub of a section
``/cycling-guides/steep-climbs-31.html``   article (under ``/members/``: robots.txt forbids it)
``/guides/``  ``/guides/31.html``          the two on hosts whose URLs do not tell the topic
``/index.html``  ``….html?print=1``        the same content again, with a canonical link
``…?sid=0f3a99c2``                         the same content again, on hosts with sessions
``/cycling-guides``  ``/go/31``            301 to the hub, 302 to the article
``/old/31.html``                           301 to ``/go/31``
``/past/2009/31.html``                     404 or 410
``/calendar/?month=24292``                 a month; links to the next and the previous one
``/files/31.pdf``  ``/images/31.gif``      not HTML
``/robots.txt``                            on hosts with members' pages, else 404
========================================  =============================================
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from focuscrawl.webs.synthetic.layout import ABOUT, FIRST_HUB, HOME, PRIVACY, Host, Page, Places
from focuscrawl.webs.synthetic.seeded_random import Draws, mix
from focuscrawl.webs.synthetic.words import FACETS

_NUMBER = r"(0|[1-9][0-9]{0,17})"
_URL = re.compile(rf"https?://([a-z]+-{_NUMBER}\.demo\.example)(/[^?]*)(\?.*)?")
_ARTICLE = re.compile(rf"/[a-z-]+/(?:[a-z0-9-]+-)?{_NUMBER}\.html")
_HUB = re.compile(r"/(?:[a-z]+-)?([a-z]+)(/?)")
_BY_INDEX = re.compile(rf"/(go|old|past|files|images)/(?:(20[0-9]{{2}})/)?{_NUMBER}(\.[a-z]+)?")
_MONTH = re.compile(rf"\?month={_NUMBER}")
_SESSION = re.compile(r"\?sid=[0-9a-f]{8}")

_OUTSIDE = {
    "/": HOME,
    "/index.html": HOME,
    "/about.html": ABOUT,
    "/privacy.html": PRIVACY,
}


class Kind(Enum):
    """What an address leads to."""

    PAGE = "page"
    COPY = "copy"
    MOVED = "moved"
    TRACKED = "go"
    OLD = "old"
    DEAD = "past"
    PDF = "files"
    IMAGE = "images"
    CALENDAR = "calendar"
    ROBOTS = "robots"


_SUFFIX = {
    Kind.TRACKED: (None, False),
    Kind.OLD: (".html", False),
    Kind.DEAD: (".html", True),
    Kind.PDF: (".pdf", False),
    Kind.IMAGE: (".gif", False),
}


class Address(NamedTuple):
    """What a URL of the synthetic web leads to, read from its text.

    Attributes
    ----------
    kind, host : what it is, and where
    number : page on the host (its index there), or the month of a calendar
    path : path and query
    """

    kind: Kind
    host: Host
    number: int
    path: str

    @property
    def url(self) -> str:
        """The URL as the web spells it."""
        return f"{self.host.scheme}://{self.host.name}{self.path}"


def page_url(page: Page) -> str:
    """Return the URL under which the web lists `page`."""
    return f"{page.host.scheme}://{page.host.name}{page.path}"


def read(url: str, places: Places) -> Address | None:
    """Understand a normalised URL; None if the web has no such thing."""
    found = _URL.fullmatch(url)
    if not found or int(found[2]) >= places.hosts:
        return None
    host = places.host(int(found[2]))
    path, query = found[3], found[4] or ""
    if host.name != found[1]:
        return None
    if by_index := _BY_INDEX.fullmatch(path):
        return _numbered(by_index, host, path) if not query else None
    if path in {"/robots.txt", "/calendar/"}:
        return _service(path, query, host)
    return _content(path, query, host, places)


def _service(path: str, query: str, host: Host) -> Address | None:
    if path == "/robots.txt":
        return Address(Kind.ROBOTS, host, 0, path) if not query else None
    month = _MONTH.fullmatch(query) if host.calendar else None
    return Address(Kind.CALENDAR, host, int(month[1]), path + query) if month else None


def _numbered(found: re.Match[str], host: Host, path: str) -> Address | None:
    kind = Kind(found[1])
    index = int(found[3])
    if _SUFFIX[kind] != (found[4], found[2] is not None):
        return None
    if not FIRST_HUB + host.sections <= index < host.size:
        return None
    return Address(kind, host, index, path)


def _content(path: str, query: str, host: Host, places: Places) -> Address | None:
    kind = Kind.PAGE
    begin = FIRST_HUB + host.sections
    if path in _OUTSIDE:
        index = _OUTSIDE[path]
        kind = Kind.COPY if path == "/index.html" else Kind.PAGE
    elif article := _ARTICLE.fullmatch(path):
        index = int(article[1])
        if not begin <= index < host.size or places.page_at(host, index).path != path:
            return None
    elif (hub := _HUB.fullmatch(path)) and hub[1] in FACETS[: host.sections]:
        index = FIRST_HUB + FACETS.index(hub[1])
        if not hub[2]:
            kind = Kind.MOVED
        if places.page_at(host, index).path.rstrip("/") != path.rstrip("/"):
            return None
    else:
        return None
    if not query:
        return Address(kind, host, index, path)
    printed = query == "?print=1" and index >= begin
    session = host.sessions and _SESSION.fullmatch(query) is not None
    if kind is Kind.PAGE and (printed or session):
        return Address(Kind.COPY, host, index, path + query)
    return None


def spell(target: Page, source: Host, draws: Draws) -> str:
    """Write a link to `target` as an author on `source` would: not always the one way."""
    path = target.path
    chance = draws.unit()
    article = target.index >= FIRST_HUB + target.host.sections
    if article and chance < 0.035:
        path = (
            f"/old/{target.index}.html"
            if chance < 0.007
            else f"/go/{target.index}"
            if chance < 0.022
            else f"{path}?print=1"
        )
    elif target.index == HOME and chance < 0.12:
        path = "/index.html"
    elif not article and target.index >= FIRST_HUB and chance < 0.12:
        path = path.rstrip("/")
    elif target.host.sessions and target.host.number == source.number and chance > 0.85:
        path = f"{path}?sid={mix(target.number, int(chance * 2**32)) & 0xFFFFFFFF:08x}"
    if target.host.number == source.number:
        return path
    scheme = target.host.scheme
    if chance > 0.97:
        scheme = "http" if scheme == "https" else "https"
    return f"{scheme}://{target.host.name}{path}"
