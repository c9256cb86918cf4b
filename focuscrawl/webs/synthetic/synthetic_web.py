"""The synthetic web, which answers requests with generated pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from math import gcd, isfinite

from focuscrawl.errors import UserError
from focuscrawl.taxonomy import Label
from focuscrawl.webs.synthetic.content import Author, render
from focuscrawl.webs.synthetic.layout import (
    Address,
    AddressKind,
    Page,
    Role,
    WebLayout,
    page_url,
    parse_url,
)
from focuscrawl.webs.synthetic.vocabulary import TOPICS, fraction, hash_ints
from focuscrawl.webs.web_protocol import Answer

_GIF = (
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,"
    b"\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


_MISSING = (
    "<html><head><title>Not found</title></head><body><h1>Not found</h1>"
    '<p>This page is gone. <a href="/">Home</a></body></html>'
)


def answer(address: Address, places: WebLayout) -> Answer:  # noqa: PLR0911 - one return for each kind
    """Return the response of the synthetic web to a request for `address`."""
    host, number = address.host, address.number
    match address.kind:
        case AddressKind.PAGE | AddressKind.COPY:
            return _html(address, render(Author(places, places.page_at(host, number)).write()))
        case AddressKind.MOVED:
            return _redirect(address, 301, places.page_at(host, number).path)
        case AddressKind.TRACKED:
            return _redirect(address, 302, places.page_at(host, number).path)
        case AddressKind.OLD:
            # a relative URL, which RFC 9110 section 10.2.2 allows
            return Answer(address.url, 301, [("Location", f"/go/{number}")], b"")
        case AddressKind.DEAD:
            gone = hash_ints(host.number, number) % 4 == 0
            return _html(address, _MISSING, 410 if gone else 404)
        case AddressKind.CALENDAR:
            return _html(address, _month(host.title, number))
        case AddressKind.PDF:
            return _plain(address, "application/pdf", _pdf(places.page_at(host, number).title))
        case AddressKind.IMAGE:
            return _plain(address, "image/gif", _GIF)
        case AddressKind.ROBOTS if host.members:
            return _plain(address, "text/plain", b"User-agent: *\nDisallow: /members/\n")
        case AddressKind.ROBOTS:
            return _html(address, _MISSING, 404)


def _month(site: str, month: int) -> str:
    name = f"{_MONTHS[month % 12]} {month // 12}"
    before = f'<a href="?month={month - 1}">Previous month</a>' if month else ""
    return (
        f"<html><head><title>{name} | {site}</title></head><body><h1>{name}</h1>"
        f"<p>{before} <a href='?month={month + 1}'>Next month</a>"
        f"<p>Nothing is planned for {name}. <a href='/'>Home</a></body></html>"
    )


def _pdf(title: str) -> bytes:
    body = (
        "%PDF-1.4\n"
        "1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        "2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n"
        f"3 0 obj<</Title({title})>>endobj\n"
        "trailer<</Root 1 0 R/Info 3 0 R>>\n%%EOF\n"
    )
    return body.encode("latin-1")


def _html(address: Address, html: str, status: int = 200) -> Answer:
    host = address.host
    kind = "text/html"
    if host.declared == "header":
        kind += f"; charset={host.encoding}"
    body = html.encode(host.encoding, "xmlcharrefreplace")
    return Answer(address.url, status, [("Content-Type", kind)], body)


def _plain(address: Address, kind: str, body: bytes) -> Answer:
    return Answer(address.url, 200, [("Content-Type", kind)], body)


def _redirect(address: Address, status: int, path: str) -> Answer:
    target = address._replace(path=path).url
    return Answer(address.url, status, [("Location", target)], b"")


#: version; increases whenever a page of any web changes
VERSION = 2

_BLOCKS = 3  # at scale 1: 60 hosts, 3,000 pages
_ARTICLES = frozenset({Role.ARTICLE, Role.NOTE, Role.ROUNDUP})


class SyntheticWeb:
    """A web of generated pages (a `Web`).

    Parameters
    ----------
    scale : float
        Size in multiples of 3,000 pages on 60 hosts, rounded to 1,000 pages, at least 1,000.
    random_state : int
        Webs with equal scale and random state are equal in every byte on any machine.

    Attributes
    ----------
    name : str
        "demo"
    fingerprint : str
        Hex digest, equal for equal content.
    topics : tuple of str
        Paths of the leaf topics.

    Raises
    ------
    UserError
        `scale` is not a positive number.
    """

    def __init__(self, scale: float = 1.0, random_state: int = 0) -> None:
        if not (isfinite(scale) and scale > 0):
            raise UserError(
                f"scale {scale} of the synthetic web is invalid: give a number above 0"
            )
        blocks = max(1, round(_BLOCKS * scale))
        self._places = WebLayout(blocks, hash_ints(random_state))
        self.name = "demo"
        content = f"synthetic web {VERSION} {blocks} {random_state}"
        self.fingerprint = blake2b(content.encode(), digest_size=16).hexdigest()
        self.topics = tuple(topic.path for topic in TOPICS)

    def __len__(self) -> int:
        """Return the number of URLs of `urls`."""
        return self._places.pages

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Return each URL as the synthetic web spells it; None for URLs outside the web.

        The synthetic web also contains URLs that `urls` omits, such as copies, redirects, dead
        links and endless calendars.
        """
        found = (parse_url(url, self._places) for url in urls)
        return [address.url if address else None for address in found]

    def fetch(self, url: str) -> Answer | None:
        """Return the response for a URL that `resolve` returned, or None."""
        address = parse_url(url, self._places)
        return answer(address, self._places) if address and address.url == url else None

    def urls(self) -> Iterator[str]:
        """Yield the main URL of every page in a fixed order."""
        for number in range(self._places.pages):
            yield page_url(self._places.page(number))

    def labels(self) -> Iterator[Label]:
        """Yield the labels of about half of all articles, in a fixed order.

        Home pages, hubs and pages that robots.txt forbids have no labels.
        """
        for number in range(self._places.pages):
            if label := self._label(self._places.page(number)):
                yield label

    def seeds(self, topic: str, count: int = 5) -> list[str]:
        """Return the URLs of `count` training examples of `topic` from the whole web.

        The training examples are short notes with few links, so a crawl from these pages starts
        with little information.

        Raises
        ------
        UserError
            The topic does not exist.
        """
        if topic not in self.topics:
            raise UserError(
                f"topic {topic} is not in the demo web: it has {', '.join(self.topics)}"
            )
        pages = self._places.pages
        stride = hash_ints(self._places.seed, 9) % pages
        while gcd(stride, pages) != 1:  # then the steps reach every page once
            stride += 1
        found: list[str] = []
        for step in range(1, pages + 1):
            page = self._places.page(step * stride % pages)
            label = self._label(page)
            if page.role is not Role.NOTE or label is None:
                continue
            if label.topic == topic and label.split == "train":
                found.append(label.url)
                if len(found) == count:
                    break
        return found

    def _label(self, page: Page) -> Label | None:
        if page.role not in _ARTICLES or page.path.startswith("/members/"):
            return None
        chance = fraction(self._places.seed, 10, page.number)
        if chance >= 0.5:
            return None
        split = "train" if chance < 0.3 else "test"
        return Label(page_url(page), TOPICS[page.topic].path, split)
