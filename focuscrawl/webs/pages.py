"""HTML pages of a web that needs no network: found, told from what is no page, and parsed."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, Self

from focuscrawl.page import TooMuchWorkError, is_html, read_content_type, shared_parser

if TYPE_CHECKING:
    from focuscrawl.page import PageView
    from focuscrawl.webs.protocol import Answer, Web


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
        except TooMuchWorkError:
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
