"""Hosts, pages, addresses and links of the synthetic web, all computed from numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from focuscrawl.webs.synthetic.vocabulary import (
    PLACES,
    RELATED_TOPICS,
    SECTION_NAMES,
    TOPICS,
    RandomStream,
    fraction,
    hash_ints,
    slug,
    title,
)

DEMO_DOMAIN = "demo.example"  #: domain of all hosts of the synthetic web
BLOCK_HOSTS = 20
BLOCK_PAGES = 1000
_SIZES = (120, 90, 80, 70, 64, 60, 56, 52, 48, 46, 44, 42, 40, 38, 34, 30, 28, 24, 20, 14)
_FIRST = (0, *accumulate(_SIZES))
_HOST_OF = tuple(host for host, size in enumerate(_SIZES) for _ in range(size))
_SECTION_PAGES = 14  # average pages a section

NEWS, SHOPPING = 5, 6
#: topic of each slot of a block's ring: general sites and a few topics have more than one
SLOTS = (0, 5, 1, 2, 12, 6, 3, 4, 9, 5, 7, 8, 12, 9, 10, 6, 11, 13, 7, 5)
SLOTS_OF = tuple(
    tuple(slot for slot, topic in enumerate(SLOTS) if topic == number)
    for number in range(len(TOPICS))
)
_PORTAL_SLOT = 1

HOME, ABOUT, PRIVACY, FIRST_HUB = 0, 1, 2, 3

_NUMBER = r"(0|[1-9][0-9]{0,17})"
_URL = re.compile(rf"https?://([a-z]+-{_NUMBER}\.{re.escape(DEMO_DOMAIN)})(/[^?]*)(\?.*)?")
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
_ODD_SECTIONS = (1, 1, 1, 3, 3, 5)


class Role(IntEnum):
    """The role of a synthetic page on its host, such as home page or article."""

    HOME = 0
    SERVICE = 1  # about, privacy
    HUB = 2  # lists the pages of a section
    ARTICLE = 3
    NOTE = 4  # a short article with few links
    ROUNDUP = 5  # links on its topic and, under other headings, on other topics


@dataclass(frozen=True, slots=True)
class Host:
    """A host of the synthetic web, with its size, its topics and its design.

    Attributes
    ----------
    number, block : number of the host and of its block
    size, first, sections : number of pages; number of its first page; number of sections
    topic : main topic, an index into `TOPICS`
    name, title, scheme : host name, site title, URL scheme
    encoding, declared : encoding of its pages, declared in "header", "meta" or "nowhere"
    style : index of the page design
    calendar, sessions, members : whether the host has an endless calendar, session ids in links,
    and
        pages that robots.txt forbids
    portal, opaque : whether the host is the directory of the block, and has URLs without topic
    words
    """

    number: int
    block: int
    size: int
    first: int
    sections: int
    topic: int
    name: str
    title: str
    scheme: str
    encoding: str
    declared: str
    style: int
    calendar: bool
    sessions: bool
    members: bool
    portal: bool
    opaque: bool

    @property
    def general(self) -> bool:
        """Whether the host is a news site or a shop, with many links to all topics."""
        return self.topic in {NEWS, SHOPPING}


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the synthetic web, with its host, role and topic.

    Attributes
    ----------
    number, host, index : number in the web; site; index on the site
    role, section, topic : `section` is -1 for pages outside all sections
    title, path : `path` is the main path of the page
    """

    number: int
    host: Host
    index: int
    role: Role
    section: int
    topic: int
    title: str
    path: str


class WebLayout:
    """Computes the hosts and pages of a synthetic web of `blocks` blocks (groups of hosts).

    A block has 20 hosts with 1,000 pages. All blocks have the same host sizes in the same order. A
    host has one main topic, to which the sections with even numbers belong. Sections with odd
    numbers have other topics. In each block, the topics of the k-th section of all hosts are a
    cyclic shift of one list. So the host with a section about a given topic is computed by
    subtraction.
    """

    def __init__(self, blocks: int, seed: int) -> None:
        self.blocks = blocks
        self.hosts = blocks * BLOCK_HOSTS
        self.pages = blocks * BLOCK_PAGES
        self.seed = seed
        # links repeat the same hosts and pages; the limits bound the memory
        self.host: Callable[[int], Host] = lru_cache(maxsize=1024)(self._host)
        self.page: Callable[[int], Page] = lru_cache(maxsize=8192)(self._page)
        self._turn: Callable[[int, int], int] = lru_cache(maxsize=4096)(self._ring_offset)

    def _ring_offset(self, block: int, section: int) -> int:
        turn = hash_ints(self.seed, 1, block) % BLOCK_HOSTS
        if section % 2:
            turn += 1 + hash_ints(self.seed, 2, block, section) % (BLOCK_HOSTS - 1)
        return turn

    def section_topic(self, host: Host, section: int) -> int:
        """Return the topic of a section of a host."""
        place = host.number % BLOCK_HOSTS
        return SLOTS[(place + self._turn(host.block, section)) % BLOCK_HOSTS]

    def host_at(self, block: int, slot: int, section: int = 0) -> Host:
        """Return the host in `block` with the topic ``SLOTS[slot]`` in the given section."""
        place = (slot - self._turn(block, section)) % BLOCK_HOSTS
        return self.host(block * BLOCK_HOSTS + place)

    def portal(self, block: int) -> Host:
        """Return the host of a block that is a web directory."""
        return self.host_at(block % self.blocks, _PORTAL_SLOT)

    def section_pages(self, host: Host, section: int) -> range:
        """Return the numbers of the pages in a section of a host, without the section's hub."""
        begin = FIRST_HUB + host.sections
        content = host.size - begin
        return range(
            begin + -(-section * content // host.sections),
            begin + -(-(section + 1) * content // host.sections),
        )

    def page_at(self, host: Host, index: int) -> Page:
        """Return the page of `host` with the number `index`."""
        return self.page(host.first + index)

    def hub(self, host: Host, section: int) -> Page:
        """Return the hub page of a section, which links to the pages of the section."""
        return self.page_at(host, FIRST_HUB + section)

    def section_slug(self, host: Host, section: int) -> str:
        """Return the folder name of a section in URLs."""
        if host.opaque:
            return SECTION_NAMES[section]
        return f"{TOPICS[self.section_topic(host, section)].leaf.lower()}-{SECTION_NAMES[section]}"

    def _host(self, number: int) -> Host:
        block, place = divmod(number, BLOCK_HOSTS)
        slot = (place + self._turn(block, 0)) % BLOCK_HOSTS
        topic = SLOTS[slot]
        draws = RandomStream(hash_ints(self.seed, 3, number))
        stem = draws.pick(TOPICS[topic].stems)
        encoding, declared = draws.pick(
            (("utf-8", "header"),) * 6
            + (
                ("utf-8", "nowhere"),
                ("utf-8", "meta"),
                ("iso-8859-1", "meta"),
                ("windows-1252", "header"),
            )
        )
        size = _SIZES[place]
        return Host(
            number=number,
            block=block,
            size=size,
            first=block * BLOCK_PAGES + _FIRST[place],
            sections=max(1, size // _SECTION_PAGES),
            topic=topic,
            name=f"{stem}-{number}.{DEMO_DOMAIN}",
            title=f"{stem.capitalize()} {draws.pick(PLACES)}",
            scheme="http" if draws.chance(0.15) else "https",
            encoding=encoding,
            declared=declared,
            style=draws.between(0, 2),
            calendar=draws.chance(0.3),
            sessions=draws.chance(0.12),
            members=draws.chance(0.3),
            portal=slot == _PORTAL_SLOT,
            opaque=draws.chance(0.5),
        )

    def _page(self, number: int) -> Page:
        block, rest = divmod(number, BLOCK_PAGES)
        host = self.host(block * BLOCK_HOSTS + _HOST_OF[rest])
        index = number - host.first
        if index < FIRST_HUB:
            name = ("", "About", "Privacy")[index]
            path = f"/{name.lower()}.html" if name else "/"
            role = Role.SERVICE if name else Role.HOME
            heading = f"{name} {host.title}" if name else host.title
            return Page(number, host, index, role, -1, host.topic, heading, path)
        if index < FIRST_HUB + host.sections:
            section = index - FIRST_HUB
            topic = self.section_topic(host, section)
            path = f"/{self.section_slug(host, section)}/"
            heading = f"{TOPICS[topic].leaf} {SECTION_NAMES[section]}"
            return Page(number, host, index, Role.HUB, section, topic, heading, path)
        begin = FIRST_HUB + host.sections
        section = (index - begin) * host.sections // (host.size - begin)
        topic = self._page_topic(self.section_topic(host, section), number)
        heading = title(TOPICS[topic], hash_ints(self.seed, 5, number))
        kind = fraction(self.seed, 6, number)
        role = Role.ROUNDUP if kind < 0.15 else Role.NOTE if kind < 0.5 else Role.ARTICLE
        hidden = host.members and fraction(self.seed, 7, number) < 0.08
        folder = "members" if hidden else self.section_slug(host, section)
        file = f"{index}" if host.opaque else f"{slug(heading)}-{index}"
        path = f"/{folder}/{file}.html"
        return Page(number, host, index, role, section, topic, heading, path)

    def _page_topic(self, topic: int, number: int) -> int:
        """Return the topic of a page: usually the section's, or a related or random topic."""
        bits = hash_ints(self.seed, 4, number)
        chance, bits = bits % 100, bits // 100
        if chance < 88:
            return topic
        return (
            RELATED_TOPICS[topic][bits % len(RELATED_TOPICS[topic])]
            if chance < 94
            else SLOTS[bits % len(SLOTS)]
        )


class AddressKind(Enum):
    """The kinds of URLs in the synthetic web, such as page URLs and redirects."""

    # home page ``/``, hub ``/cycling-guides/``, article ``/cycling-guides/steep-climbs-31.html``;
    # on opaque hosts ``/guides/`` and ``/guides/31.html``; robots.txt forbids ``/members/``
    PAGE = "page"
    COPY = "copy"  # ``/index.html``, ``?print=1``, ``?sid=0f3a99c2``: copy with a canonical link
    MOVED = "moved"  # ``/cycling-guides``: 301 to the hub
    TRACKED = "go"  # ``/go/31``: 302 to the article
    OLD = "old"  # ``/old/31.html``: 301 to ``/go/31``
    DEAD = "past"  # ``/past/2009/31.html``: 404 or 410
    PDF = "files"  # ``/files/31.pdf``
    IMAGE = "images"  # ``/images/31.gif``
    CALENDAR = "calendar"  # ``/calendar/?month=24292``: links to the next and previous month
    ROBOTS = "robots"  # ``/robots.txt``: 404 on hosts without members' pages


_SUFFIX = {
    AddressKind.TRACKED: (None, False),
    AddressKind.OLD: (".html", False),
    AddressKind.DEAD: (".html", True),
    AddressKind.PDF: (".pdf", False),
    AddressKind.IMAGE: (".gif", False),
}


class Address(NamedTuple):
    """The parts of a URL of the synthetic web.

    Attributes
    ----------
    kind, host : kind of the response, and the host
    number : index of the page on the host, or the month of a calendar
    path : path and query
    """

    kind: AddressKind
    host: Host
    number: int
    path: str

    @property
    def url(self) -> str:
        """The main (canonical) URL of the address."""
        return f"{self.host.scheme}://{self.host.name}{self.path}"


def page_url(page: Page) -> str:
    """Return the main URL of `page`."""
    return f"{page.host.scheme}://{page.host.name}{page.path}"


def parse_url(url: str, places: WebLayout) -> Address | None:
    """Parse a normalised URL; return None if the synthetic web does not contain the URL."""
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
        return Address(AddressKind.ROBOTS, host, 0, path) if not query else None
    month = _MONTH.fullmatch(query) if host.calendar else None
    return Address(AddressKind.CALENDAR, host, int(month[1]), path + query) if month else None


def _numbered(found: re.Match[str], host: Host, path: str) -> Address | None:
    kind = AddressKind(found[1])
    index = int(found[3])
    if _SUFFIX[kind] != (found[4], found[2] is not None):
        return None
    if not FIRST_HUB + host.sections <= index < host.size:
        return None
    return Address(kind, host, index, path)


def _content(path: str, query: str, host: Host, places: WebLayout) -> Address | None:
    kind = AddressKind.PAGE
    begin = FIRST_HUB + host.sections
    if path in _OUTSIDE:
        index = _OUTSIDE[path]
        kind = AddressKind.COPY if path == "/index.html" else AddressKind.PAGE
    elif article := _ARTICLE.fullmatch(path):
        index = int(article[1])
        if not begin <= index < host.size or places.page_at(host, index).path != path:
            return None
    elif (hub := _HUB.fullmatch(path)) and hub[1] in SECTION_NAMES[: host.sections]:
        index = FIRST_HUB + SECTION_NAMES.index(hub[1])
        if not hub[2]:
            kind = AddressKind.MOVED
        if places.page_at(host, index).path.rstrip("/") != path.rstrip("/"):
            return None
    else:
        return None
    if not query:
        return Address(kind, host, index, path)
    printed = query == "?print=1" and index >= begin
    session = host.sessions and _SESSION.fullmatch(query) is not None
    if kind is AddressKind.PAGE and (printed or session):
        return Address(AddressKind.COPY, host, index, path + query)
    return None


def write_href(target: Page, source: Host, draws: RandomStream) -> str:
    """Return the ``href`` of a link from `source` to `target`, sometimes an alias URL."""
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
        path = f"{path}?sid={hash_ints(target.number, int(chance * 2**32)) & 0xFFFFFFFF:08x}"
    if target.host.number == source.number:
        return path
    scheme = target.host.scheme
    if chance > 0.97:
        scheme = "http" if scheme == "https" else "https"
    return f"{scheme}://{target.host.name}{path}"


class Targets:
    """Chooses random targets for the links of a synthetic page.

    Linked pages are more similar in topic than random pages (Davison, SIGIR 2000; Menczer, JASIST
    2004). Most links of a synthetic page lead to the same section, to the same topic on other
    hosts, or to a related topic. Popular hosts and pages get most of the links.
    """

    def __init__(self, places: WebLayout, page: Page, draws: RandomStream) -> None:
        self._places = places
        self._page = page
        self._draws = draws

    def same_section(self) -> Page:
        """Choose a random page in the linking page's section (home page: any section)."""
        host = self._page.host
        section = self._page.section
        if section < 0:
            section = self._draws.rank(host.sections)
        return self._in_section(host, section)

    def same_host(self) -> Page:
        """Choose a random page of the same host, with any topic."""
        host = self._page.host
        return self._in_section(host, self._draws.between(0, host.sections - 1))

    def on_topic(self, topic: int) -> Page:
        """Choose a random page about `topic` on a host in a nearby block or on a popular host."""
        draws = self._draws
        block = self._block()
        slot = draws.pick(SLOTS_OF[topic])
        if draws.chance(0.3):
            section = draws.pick(_ODD_SECTIONS)
            host = self._places.host_at(block, slot, section)
            if section < host.sections:
                return self._in_section(host, section)
        host = self._places.host_at(block, slot)
        return self._in_section(host, 2 * draws.rank((host.sections + 1) // 2))

    def related_topic(self, topic: int) -> Page:
        """Choose a random page about a topic that is related to `topic`."""
        return self.on_topic(self._draws.pick(RELATED_TOPICS[topic]))

    def anywhere(self) -> Page:
        """Choose a random page about any topic, often on a news site or in a shop."""
        draws = self._draws
        general = draws.chance(0.3)
        return self.on_topic(draws.pick((NEWS, SHOPPING)) if general else draws.pick(SLOTS))

    def home(self, topic: int) -> Page:
        """Choose the home page of a random host whose main topic is `topic`."""
        slot = self._draws.pick(SLOTS_OF[topic])
        return self._places.page_at(self._places.host_at(self._block(), slot), 0)

    def _block(self) -> int:
        draws = self._draws
        own = self._page.host.block
        near = draws.unit()
        if near < 0.55:
            return own
        if near < 0.75:
            return (own + 1) % self._places.blocks
        return int(draws.unit() * draws.unit() * draws.unit() * self._places.blocks)

    def _in_section(self, host: Host, section: int) -> Page:
        draws = self._draws
        pages = self._places.section_pages(host, section)
        if draws.chance(0.08):
            return self._places.hub(host, section)
        return self._places.page_at(host, pages[draws.rank(len(pages))])
