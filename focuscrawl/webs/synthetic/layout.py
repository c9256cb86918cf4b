"""Hosts, their sections and pages: what is where, computed from numbers alone.

Hosts come in blocks of 20 with 1,000 pages; the k-th block of every web has its sizes in the
same order. A host has one main topic; its even sections are about that, its odd ones about
another. Section topics are slots of a ring turned by a block's own offset, so that "a section
about topic t in block b" is found by subtraction, without a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from focuscrawl.webs.synthetic.prose import slug, title
from focuscrawl.webs.synthetic.seeded_random import Draws, fraction, mix
from focuscrawl.webs.synthetic.words import FACETS, KIN, PLACES, TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK_HOSTS = 20
BLOCK_PAGES = 1000
_SIZES = (120, 90, 80, 70, 64, 60, 56, 52, 48, 46, 44, 42, 40, 38, 34, 30, 28, 24, 20, 14)
_FIRST = (0, *accumulate(_SIZES))
_HOST_OF = tuple(host for host, size in enumerate(_SIZES) for _ in range(size))
_SECTION_PAGES = 14  # about so many pages share a section

NEWS, SHOPPING = 5, 6
#: topic of each slot of a block's ring: general sites and a few topics have more than one
SLOTS = (0, 5, 1, 2, 12, 6, 3, 4, 9, 5, 7, 8, 12, 9, 10, 6, 11, 13, 7, 5)
SLOTS_OF = tuple(
    tuple(slot for slot, topic in enumerate(SLOTS) if topic == number)
    for number in range(len(TOPICS))
)
_PORTAL_SLOT = 1

HOME, ABOUT, PRIVACY, FIRST_HUB = 0, 1, 2, 3


class Role(IntEnum):
    """What a page is for."""

    HOME = 0
    SERVICE = 1  # about, privacy
    HUB = 2  # lists the pages of a section
    ARTICLE = 3
    NOTE = 4  # a short article with few links
    ROUNDUP = 5  # lists links on its topic and, under other headings, on others


@dataclass(frozen=True, slots=True)
class Host:
    """A site of the synthetic web: its size, its topics, how its pages are served.

    Attributes
    ----------
    number, block : its number; the block it is in
    size, first, sections : pages; number of its first page; sections, each with a hub
    topic : main topic, a number into `words.TOPICS`
    name, title, scheme, encoding, declared : encoding of its pages, and where it is said:
        "header", "meta" or "nowhere"
    style : which of the three page designs
    calendar, sessions, members : has an endless calendar; puts session ids into its links; has
        pages that robots.txt forbids
    portal, opaque : is the block's directory; has URLs that do not tell the topic
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
        """Whether this is a news site or a shop: many links, to everything."""
        return self.topic in {NEWS, SHOPPING}


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the synthetic web: where it is, and what it is about.

    Attributes
    ----------
    number, host, index : its number in the web; its site; its number there
    role, section, topic : `section` is -1 for pages outside every section
    title, path : the path is the one spelling under which the web lists the page
    """

    number: int
    host: Host
    index: int
    role: Role
    section: int
    topic: int
    title: str
    path: str


class Places:
    """All hosts and pages of a web of `blocks` blocks."""

    def __init__(self, blocks: int, seed: int) -> None:
        self.blocks = blocks
        self.hosts = blocks * BLOCK_HOSTS
        self.pages = blocks * BLOCK_PAGES
        self.seed = seed
        # links come back to the same hosts and pages again and again; the bound keeps memory flat
        self.host: Callable[[int], Host] = lru_cache(maxsize=1024)(self._host)
        self.page: Callable[[int], Page] = lru_cache(maxsize=8192)(self._page)
        self._turn: Callable[[int, int], int] = lru_cache(maxsize=4096)(self._ring_offset)

    def _ring_offset(self, block: int, section: int) -> int:
        turn = mix(self.seed, 1, block) % BLOCK_HOSTS
        if section % 2:
            turn += 1 + mix(self.seed, 2, block, section) % (BLOCK_HOSTS - 1)
        return turn

    def section_topic(self, host: Host, section: int) -> int:
        """Return the topic of a section."""
        place = host.number % BLOCK_HOSTS
        return SLOTS[(place + self._turn(host.block, section)) % BLOCK_HOSTS]

    def host_at(self, block: int, slot: int, section: int = 0) -> Host:
        """Return the host of `block` whose `section`, if it has it, lies on `slot` of the ring."""
        place = (slot - self._turn(block, section)) % BLOCK_HOSTS
        return self.host(block * BLOCK_HOSTS + place)

    def portal(self, block: int) -> Host:
        """Return the directory of a block."""
        return self.host_at(block % self.blocks, _PORTAL_SLOT)

    def section_pages(self, host: Host, section: int) -> range:
        """Return the indices of a section's pages on the host, its hub not included."""
        begin = FIRST_HUB + host.sections
        content = host.size - begin
        return range(
            begin + -(-section * content // host.sections),
            begin + -(-(section + 1) * content // host.sections),
        )

    def page_at(self, host: Host, index: int) -> Page:
        """Return page `index` of `host`."""
        return self.page(host.first + index)

    def hub(self, host: Host, section: int) -> Page:
        """Return the page that lists a section."""
        return self.page_at(host, FIRST_HUB + section)

    def section_slug(self, host: Host, section: int) -> str:
        """Return a section's directory."""
        if host.opaque:
            return FACETS[section]
        return f"{TOPICS[self.section_topic(host, section)].leaf.lower()}-{FACETS[section]}"

    def _host(self, number: int) -> Host:
        block, place = divmod(number, BLOCK_HOSTS)
        slot = (place + self._turn(block, 0)) % BLOCK_HOSTS
        topic = SLOTS[slot]
        draws = Draws(mix(self.seed, 3, number))
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
            name=f"{stem}-{number}.demo.example",
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
            heading = f"{TOPICS[topic].leaf} {FACETS[section]}"
            return Page(number, host, index, Role.HUB, section, topic, heading, path)
        begin = FIRST_HUB + host.sections
        section = (index - begin) * host.sections // (host.size - begin)
        topic = self._stray(self.section_topic(host, section), number)
        heading = title(TOPICS[topic], mix(self.seed, 5, number))
        kind = fraction(self.seed, 6, number)
        role = Role.ROUNDUP if kind < 0.15 else Role.NOTE if kind < 0.5 else Role.ARTICLE
        hidden = host.members and fraction(self.seed, 7, number) < 0.08
        folder = "members" if hidden else self.section_slug(host, section)
        file = f"{index}" if host.opaque else f"{slug(heading)}-{index}"
        path = f"/{folder}/{file}.html"
        return Page(number, host, index, role, section, topic, heading, path)

    def _stray(self, topic: int, number: int) -> int:
        """Return a page's own topic: mostly its section's, now and then one near it, or any."""
        bits = mix(self.seed, 4, number)
        chance, bits = bits % 100, bits // 100
        if chance < 88:
            return topic
        return KIN[topic][bits % len(KIN[topic])] if chance < 94 else SLOTS[bits % len(SLOTS)]
