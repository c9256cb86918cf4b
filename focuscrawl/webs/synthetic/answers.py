"""What the servers of the synthetic web answer to a request for an address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.webs.protocol import Answer
from focuscrawl.webs.synthetic.addressing import Address, Kind
from focuscrawl.webs.synthetic.content import Author
from focuscrawl.webs.synthetic.markup import render
from focuscrawl.webs.synthetic.seeded_random import mix

if TYPE_CHECKING:
    from focuscrawl.webs.synthetic.layout import Places

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


def answer(address: Address, places: Places) -> Answer:  # noqa: PLR0911 - one a kind
    """Return what the server says to a request for `address`."""
    host, number = address.host, address.number
    match address.kind:
        case Kind.PAGE | Kind.COPY:
            return _html(address, render(Author(places, places.page_at(host, number)).write()))
        case Kind.MOVED:
            return _redirect(address, 301, places.page_at(host, number).path)
        case Kind.TRACKED:
            return _redirect(address, 302, places.page_at(host, number).path)
        case Kind.OLD:
            # relative, as RFC 9110 section 10.2.2 allows and some servers do
            return Answer(address.url, 301, [("Location", f"/go/{number}")], b"")
        case Kind.DEAD:
            gone = mix(host.number, number) % 4 == 0
            return _html(address, _MISSING, 410 if gone else 404)
        case Kind.CALENDAR:
            return _html(address, _month(host.title, number))
        case Kind.PDF:
            return _plain(address, "application/pdf", _pdf(places.page_at(host, number).title))
        case Kind.IMAGE:
            return _plain(address, "image/gif", _GIF)
        case Kind.ROBOTS if host.members:
            return _plain(address, "text/plain", b"User-agent: *\nDisallow: /members/\n")
        case Kind.ROBOTS:
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
