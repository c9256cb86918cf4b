"""Interface of recorded and generated webs, and functions that read pages from such webs.

A recording may come from an untrusted person. Recorded pages therefore have the same size limits
as pages of the live Web; see ``docs/explanation/security.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from focuscrawl.page import ParseLimitError, is_html, read_content_type, shared_parser
from focuscrawl.page.metadata import read_header_links

if TYPE_CHECKING:
    from focuscrawl.page import PageView


MAX_BODY_BYTES = 10 * 1024 * 1024  #: bytes of a body, compressed and decompressed
#: reasons of WARC-Truncated: too long, took too long, connection lost, other (WARC 1.1, 5.13)
TRUNCATIONS = ("length", "time", "disconnect", "unspecified")
MAX_HEAD_BYTES = 256 * 1024  #: bytes of an HTTP head
MAX_BLOCK_BYTES = MAX_HEAD_BYTES + MAX_BODY_BYTES  #: bytes of the decompressed block of a record


class TooLargeError(Exception):
    """The body of a response is larger than `MAX_BODY_BYTES`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of a server, live or recorded.

    Attributes
    ----------
    url : str
        Normalised URL as recorded.
    status : int
        HTTP status; 0 if reading the recorded response failed.
    headers : list of (str, str)
        Names and values in the order sent, without hop-by-hop headers; without Content-Encoding
        and
        Transfer-Encoding if `body` was decoded.
    body : bytes
        Decoded body; empty if too large.
    too_large : bool
        Whether the body exceeds the size limit of a crawl.
    failure : str
        Reason why a recorded response could not be read.
    truncated : str
        Reason why the recorded body is incomplete, one of `TRUNCATIONS`; empty if it is complete.
    """

    url: str
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    too_large: bool = field(default=False, repr=False)
    failure: str = field(default="", repr=False)
    truncated: str = field(default="", repr=False)

    def header(self, name: str) -> str | None:
        """Return the first value of the header `name`, given in lower case; None if missing."""
        return next((value for field, value in self.headers if field.lower() == name), None)

    @property
    def content_type(self) -> tuple[str | None, str | None]:
        """The media type and the charset, read by `focuscrawl.page.read_content_type`."""
        values = (value for field, value in self.headers if field.lower() == "content-type")
        return read_content_type(",".join(values))


class Source(Protocol):
    """A source of pages: a recording of the Web, or the live Web."""

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Return each normalised URL as the source spells it; None for unknown URLs.

        The scheme of the result, ``http`` or ``https``, is the scheme of the recorded URL.
        """
        ...

    def fetch(self, url: str) -> Answer | None:
        """Return the response for a URL that `resolve` returned; None without a response."""
        ...


class Web(Source, Protocol):
    """A recorded or generated web, which answers requests without a network.

    Attributes
    ----------
    name : str
        Short name for messages.
    fingerprint : str
        Hex digest of the content; equal content has equal digests.
    """

    name: str
    fingerprint: str

    def urls(self) -> Iterator[str]:
        """Yield every URL of the web in a fixed order."""
        ...


def is_not_modified(
    answer: Answer, if_none_match: str | None, if_modified_since: str | None
) -> bool:
    """Return whether a server would answer 304 instead of `answer`.

    Parameters
    ----------
    answer : Answer
        Response with validators among its headers.
    if_none_match, if_modified_since : str or None
        Headers of the request; `if_modified_since` counts only without `if_none_match`.
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
    # "-0000" gives a time without a zone, which Python cannot compare with zoned times
    return date if date is not None and date.tzinfo is not None else None


class HtmlAnswer(NamedTuple):
    """An unparsed HTML page, small enough to be sent to another process."""

    url: str
    body: bytes
    encoding: str | None
    references: tuple[str, ...] = ()

    @classmethod
    def from_answer(cls, answer: Answer | None, url: str | None = None) -> Self | None:
        """Return the HTML page of a response with a 2xx status; None for other responses.

        Parameters
        ----------
        url : str, optional
            URL of the page; by default that of the response.
        """
        if answer is None or answer.too_large or not 200 <= answer.status < 300:
            return None
        media_type, encoding = answer.content_type
        if not is_html(media_type, answer.body):
            return None
        url = url or answer.url
        return cls(url, answer.body, encoding, read_header_links(url, answer.headers).references)

    @classmethod
    def from_web(cls, web: Web, url: str) -> Self | None:
        """Return the unparsed HTML page of a web at a URL; None if there is no such page."""
        (known,) = web.resolve([url])
        return None if known is None else cls.from_answer(web.fetch(known), url)

    def parse(self) -> PageView | None:
        """Return the parsed page; None if parsing exceeds the limits of a crawl."""
        try:
            return shared_parser().parse(
                self.body, self.url, encoding=self.encoding, references=self.references
            )
        except ParseLimitError:
            return None


def read_page(web: Web, url: str, *, digest: bytes | None = None) -> PageView | None:
    """Read a page of a web, and return the parsed page.

    Parameters
    ----------
    url : str
        Normalised URL of the page; the web may have the URL with http instead of https.
    digest : bytes, optional
        Required BLAKE2b digest of the body, of any length.

    Returns
    -------
    PageView or None
        None if the web lacks the URL, the response is not HTML or has another digest, or parsing
        exceeds the limits of a crawl.
    """
    page = HtmlAnswer.from_web(web, url)
    if page is None:
        return None
    if digest is not None and blake2b(page.body, digest_size=len(digest)).digest() != digest:
        return None
    return page.parse()
