"""What the rest of the program knows of a web that is not the live one, and of its pages.

A recording may come from a stranger, as a page does. So no more is read of it than the crawler
takes in of the live Web; see ``docs/explanation/security.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from focuscrawl.page import ParseLimitError, is_html, read_content_type, shared_parser

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from focuscrawl.page import PageView


LARGEST_BODY = 10 * 1024 * 1024  #: bytes of a body, packed and unpacked
LARGEST_HEAD = 256 * 1024  #: bytes of an HTTP head
LARGEST_BLOCK = LARGEST_HEAD + LARGEST_BODY  #: bytes of what a record holds, unpacked
LONGEST_URL = 2083  #: characters


class TooLargeError(Exception):
    """A body is larger than `LARGEST_BODY`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered.

    Attributes
    ----------
    url : the URL as recorded, normalised
    status : HTTP status
    headers : name and value pairs in the order sent, without hop-by-hop headers and without
        Content-Encoding and Transfer-Encoding when `body` has been decoded
    body : the entity, decoded; empty if it is too large
    too_large : there is more of it than a crawl takes in
    failure : why there is none, where there should be one; the status is 0 then
    """

    url: str
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    too_large: bool = field(default=False, repr=False)
    failure: str = field(default="", repr=False)

    def header(self, name: str) -> str | None:
        """Return the first value of the field `name` (in lower case); None if there is none."""
        return next((value for field, value in self.headers if field.lower() == name), None)


class Source(Protocol):
    """Where pages are: a recorded web, or the live one."""

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Map each normalised URL to the URL it is known by here; None if it is not.

        ``http`` and ``https`` are one: both map to the spelling recorded.
        """
        ...

    def fetch(self, url: str) -> Answer | None:
        """Return the answer for a URL that `resolve` returned; None if there is none."""
        ...


class Web(Source, Protocol):
    """A web that can be asked without a network.

    Attributes
    ----------
    name : short name for people
    fingerprint : hex digest; the same for the same content
    """

    name: str
    fingerprint: str

    def urls(self) -> Iterator[str]:
        """Iterate over every URL of this web, in a fixed order."""
        ...


def not_modified(answer: Answer, if_none_match: str | None, if_modified_since: str | None) -> bool:
    """Tell whether a server would answer 304 in place of `answer`.

    Parameters
    ----------
    answer : with its validators among its headers
    if_none_match, if_modified_since : fields of the request; the second counts only without
        the first
    """
    if answer.status != 200:
        return False
    fields = {name.lower(): value.strip() for name, value in answer.headers}
    if if_none_match is not None:
        etag = fields.get("etag")
        wanted = [_weak(each) for each in if_none_match.split(",")]
        return etag is not None and (_weak(etag) in wanted or wanted == ["*"])
    changed = _date(fields.get("last-modified"))
    since = _date(if_modified_since)
    return changed is not None and since is not None and changed <= since


def _weak(etag: str) -> str:
    return etag.strip().removeprefix("W/")


def _date(field: str | None) -> datetime | None:
    try:
        date = None if field is None else parsedate_to_datetime(field)
    except ValueError:
        return None
    # "-0000" gives a time without a zone, which cannot be compared with one that has a zone
    return date if date is not None and date.tzinfo is not None else None


class HtmlAnswer(NamedTuple):
    """An HTML page that is not parsed yet; small enough to be sent to another process."""

    url: str
    body: bytes
    encoding: str | None

    @classmethod
    def of(cls, answer: Answer | None, url: str | None = None) -> Self | None:
        """Return what the crawl would take for a page: HTML, with a status of 2xx; or None.

        Parameters
        ----------
        url : that the page is to have; None: the one that was answered
        """
        if answer is None or answer.too_large or not 200 <= answer.status < 300:
            return None
        media_type, encoding = read_content_type(answer.header("content-type"))
        if not is_html(media_type, answer.body):
            return None
        return cls(url or answer.url, answer.body, encoding)

    @classmethod
    def found(cls, web: Web, url: str) -> Self | None:
        """Return the page that a web has at a URL, see `read_page`; None if it has none."""
        (known,) = web.resolve([url])
        return None if known is None else cls.of(web.fetch(known), url)

    def parse(self) -> PageView | None:
        """Return the page; None: it is too hard to parse, as it would be for a crawl."""
        try:
            return shared_parser().parse(self.body, self.url, encoding=self.encoding)
        except ParseLimitError:
            return None


def read_page(web: Web, url: str, *, digest: bytes | None = None) -> PageView | None:
    """Read a page of a web.

    Parameters
    ----------
    web : where it is
    url : normalised, as the page is to have it; the web may spell it with http for https
    digest : BLAKE2b of the body, of any length, if no other page will do

    Returns
    -------
    None if the web has no such URL, or what it answers is no HTML page, another one, or one that
    is too hard to parse
    """
    page = HtmlAnswer.found(web, url)
    if page is None:
        return None
    if digest is not None and blake2b(page.body, digest_size=len(digest)).digest() != digest:
        return None
    return page.parse()
