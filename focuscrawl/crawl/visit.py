"""Data classes of a fetch: the URL to fetch, the response, and the visit that is recorded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from focuscrawl.page.metadata import HeaderLinks
from focuscrawl.page.parse import parse_selector
from focuscrawl.store import AnswerRow, PageRow

if TYPE_CHECKING:
    from parsel import Selector

    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.page import PageView
    from focuscrawl.store.schema import LinkRow

NOT_MODIFIED = 304  # HTTP status
# kinds of events
NOINDEX = "noindex"  # a page asks not to be indexed
PAGE_FAILED = "page_failed"  # critic or strategy raised an error for a page
RENDERED = "rendered"  # a browser ran the scripts of a page
# errors of pages
TOO_HARD = "too hard to parse"  # parsing took too long
META_REFRESH = "meta refresh"  # the page redirects with <meta http-equiv=refresh> or ``Refresh``
UNREADABLE = "cannot be read"  # a document is damaged or encrypted
_MAX_HEADINGS = 50  # stored of a page


@dataclass(frozen=True, slots=True)
class Fetch:
    """A URL that has to be fetched now.

    Attributes
    ----------
    score : float or None
        Score of the link; None for a start page.
    is_refetch : bool
        True if the page was fetched before and is fetched again for its new links.
    """

    id: int
    url: str
    host: str
    depth: int
    score: float | None
    referrer: str | None
    is_refetch: bool = False


@dataclass(frozen=True, slots=True)
class Download:
    """The response to a fetch.

    Attributes
    ----------
    status : int
        HTTP status; 0 if no answer came.
    body : bytes
        Body after decompression.
    content_type, encoding : str or None
        Media type, and charset parameter, of ``Content-Type``.
    location : str or None
        Target of a redirect, as a normalised URL.
    robots, links : tuple of str
        Values of the header fields ``X-Robots-Tag`` and ``Link``.
    header_links : HeaderLinks
        Links to other pages in the header fields.
    """

    status: int
    body: bytes = b""
    content_type: str | None = None
    encoding: str | None = None
    location: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    robots: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    header_links: HeaderLinks = field(default_factory=HeaderLinks)


@dataclass(slots=True, kw_only=True)
class Visit:
    """One fetch and its outcome: a row of the store's view ``pages``, and a Scrapy item."""

    seq: int = 0
    url: str
    status: int
    relevance: float = 0.0
    topic: str | None = None
    depth: int
    score: float | None
    referrer: str | None
    fetched_at: str = ""
    content_type: str | None
    bytes: int
    title: str | None = None
    duplicate_of: str | None = None
    error: str | None = None
    links: int = 0
    dropped: int = 0


class PageVisit(Visit):
    """A fetch in progress: the page is judged, its links are queued, then the fetch is recorded.

    Code may change the attribute `relevance` before `Crawl.expand` is called. The new value
    replaces the critic's value. Feed exports of Scrapy contain only the fields of `Visit`.

    Attributes
    ----------
    view : PageView or None
        Parsed page; None before parsing, and for answers that are not pages.
    probabilities : float64 array of shape (n_classes,) or None
        Posterior probabilities of the critic's classes.
    refresh : str or None
        Target of a refresh, see `focuscrawl.crawl.state.refresh_target`.
    follows_redirect : bool
        False if the target of a redirect is fetched only on request of the spider.
    noindex : bool
        True if the page is not an item, because the crawl obeys its ``noindex``.
    digest, signature : bytes
        Digest of the body, and signature of the text, see `focuscrawl.crawl.duplicates`.
    failure : str or None
        Error that the critic or the strategy raised for the page.
    other_language : str or None
        Language of the page if the crawl does not accept that language.
    link_relevance : float or None
        Relevance by which its links are scored; None for the relevance of the page.
    duplicate_id : int or None
        URL id of the earlier page that this page duplicates.
    same_bytes : bool
        True if that page has the same bytes.
    near_duplicate : tuple of (int, float) or None
        URL id of the most similar earlier page, and the resemblance to that page.
    link_rows, newly_queued : list
        Links that are followed; scores of the URLs that this page added to the frontier.
    requested : frozenset of str or None
        URLs to follow, whatever their media type; None for all links in the scope.
    excluded : str or None
        Reason why the URL must not be fetched; None if it was fetched.
    better_host : str or None
        Host of a much better link that waited for its host during this fetch.
    final_relevance : float or None
        Relevance that the strategy and the store received; None before `Crawl.expand`.
    events : list of (str, str)
        Kind and detail of events to record together with the visit.
    """

    def __init__(self, fetch: Fetch, score: float | None, download: Download) -> None:
        super().__init__(
            url=fetch.url,
            status=download.status,
            depth=fetch.depth,
            score=score,
            referrer=fetch.referrer,
            content_type=download.content_type,
            bytes=len(download.body),
        )
        self.url_id = fetch.id
        self.is_refetch = fetch.is_refetch
        self.download = download
        self.view: PageView | None = None
        self.probabilities: Floats | None = None
        self.refresh: str | None = None
        self.follows_redirect = True
        self.noindex = False
        self.canonical: str | None = None
        self.digest: bytes | None = None
        self.signature = b""
        self.failure: str | None = None
        self.other_language: str | None = None
        self.link_relevance: float | None = None
        self.duplicate_id: int | None = None
        self.same_bytes = False
        self.near_duplicate: tuple[int, float] | None = None
        self.answer: AnswerRow | None = None
        self.link_rows: list[LinkRow] = []
        self.newly_queued: list[float] = []
        self.memo: bytes | None = None
        self.requested: frozenset[str] | None = None
        self.excluded: str | None = None
        self.better_host: str | None = None
        self.final_relevance: float | None = None
        self.events: list[tuple[str, str]] = []

    @cached_property
    def selector(self) -> Selector:
        """Selector of the HTML page; the first use of the property parses the page again.

        Raises
        ------
        focuscrawl.page.ParseLimitError
            If the parse may take more than about a second.
        """
        return parse_selector(self.download.body, self.download.encoding)

    @property
    def is_duplicate(self) -> bool:
        """True if the page is a duplicate or a near-duplicate of an earlier page."""
        return self.duplicate_id is not None or self.near_duplicate is not None

    @property
    def is_redirect(self) -> bool:
        """True if the response is an HTTP redirect or a refresh."""
        moved = 300 <= self.status < 400 and self.status != NOT_MODIFIED
        return moved or self.refresh is not None

    @property
    def location(self) -> str | None:
        """Target of the redirect, as a normalised URL."""
        return self.refresh or self.download.location

    def set_fetch_time(self) -> None:
        """Set the time of the fetch to now."""
        self.fetched_at = datetime.now(UTC).isoformat(timespec="milliseconds")

    def to_row(self) -> PageRow:
        """Return the row of the page for the store (database)."""
        return PageRow(
            seq=self.seq,
            url=self.url_id,
            status=self.status,
            relevance=self.relevance,
            topic=self.topic,
            score=self.score,
            fetched_at=self.fetched_at,
            content_type=self.content_type,
            size=self.bytes,
            title=self.title,
            canonical=self.canonical,
            digest=None if self.digest is None else self.digest + self.signature,
            duplicate_of=self.duplicate_id,
            error=self.error,
            links=self.links,
            dropped=self.dropped,
        )


def make_answer_row(view: PageView, download: Download) -> AnswerRow:
    """Return the text digest, headings, ETag and date of a page, which the next crawl uses.

    The digest is computed from only the text of the page, because many servers send a page with
    different bytes in every response.
    """
    text = " ".join(view.tokens).encode("utf-8", "replace")
    return AnswerRow(
        content=hashlib.blake2b(text, digest_size=12).digest(),
        headings="\n".join(view.headings[:_MAX_HEADINGS]),
        etag=download.etag,
        last_modified=download.last_modified,
    )
