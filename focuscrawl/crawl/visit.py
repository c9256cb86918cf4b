"""A fetch, from the URL that is given out to the row that is recorded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from focuscrawl.store import AnswerRow, PageRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from focuscrawl.page import PageView
    from focuscrawl.store.schema import LinkRow

NOT_MODIFIED = 304  # HTTP status: the answer is the one known
NOINDEX = "noindex"  # kind of the event that a page asks not to be indexed
TOO_HARD = "too hard to parse"  # the error of a page that took too long
META_REFRESH = "meta refresh"  # the error of a page that only leads to another
PAGE_FAILED = "page_failed"  # kind of the event that critic or strategy failed on a page
RENDERED = "rendered"  # kind of the event that the scripts of a page were run
UNREADABLE = "cannot be read"  # the error of a document that is damaged or locked
_HEADINGS = 50  # of a page


@dataclass(frozen=True, slots=True)
class Fetch:
    """A URL to fetch now.

    Attributes
    ----------
    score : None for a seed
    again : the page was fetched before, and is wanted for the links that are new on it
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
    """The answer to a fetch.

    Attributes
    ----------
    status : HTTP status; 0 where none was received
    body : entity, decoded
    content_type : media type without parameters, None if the server named none
    encoding : the charset parameter of Content-Type, if any
    location : where a redirect leads, a normalised URL
    etag, last_modified : header fields that a later request can ask by
    robots, links : X-Robots-Tag and Link header fields
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


@dataclass(slots=True, kw_only=True)
class Visit:
    """One fetch and its outcome: a row of the store's view `pages`, and Scrapy's item."""

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
    """A `Visit` in flight: judged, then expanded, then recorded (methods 1 to 5).

    What is set of the fields of `Visit` before `Crawl.expand` counts: a second opinion on the
    relevance does what the critic's own would have done. Exporters see those fields only.

    Attributes
    ----------
    url_id : number of the URL
    again : the page was fetched before, and is here for the links that are new on it
    download : the answer; of status 0 where there is none
    view : the page, None for what is no page and before it was parsed
    probabilities : float64 (n_classes,), posteriors of the critic's classes, if it has any
    refresh : where a page leads that shows another in its place, see `state.refresh_target`
    follows_redirect : where it redirects to is fetched next; False: only if the spider asks
    noindex : the page asks not to be indexed, and is obeyed: it is no item
    canonical : the URL that the page says is its own
    digest, minhash : of the body and of the words, as the store keeps them
    failure : how the critic or the strategy failed on the page; None: neither did
    other_language : the language of the page, if that is none of the crawl's
    link_relevance : the relevance that its links are scored by; None: its own
    twin : number of the earlier page that this one is a duplicate of, see `duplicate_of`
    resembles : the earlier page that says nearly the same, and how much the two are alike
    repeats : it says nothing new: a duplicate, to the byte or nearly
    answer : what the next crawl needs of the page
    link_rows : its links that are followed
    newly_queued : scores of the URLs that it has added to the queue
    memo : what the strategy wants back of the links
    requested : the only URLs to which links are followed, whatever their media; None: all that
        the configuration allows
    excluded : why the URL is not to be fetched at all; None: it was
    overtakes : the host of the best link that waited meanwhile, if that was much better
    final_relevance : the relevance that strategy and store have got; None before
    events : (kind, detail) of the events to be recorded with it
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
        self.probabilities: NDArray[np.float64] | None = None
        self.refresh: str | None = None
        self.follows_redirect = True
        self.noindex = False
        self.canonical: str | None = None
        self.digest: bytes | None = None
        self.minhash = b""
        self.failure: str | None = None
        self.other_language: str | None = None
        self.link_relevance: float | None = None
        self.duplicate_id: int | None = None
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

    @property
    def is_duplicate(self) -> bool:
        """True if it says nothing new."""
        return self.duplicate_id is not None or self.near_duplicate is not None

    @property
    def is_redirect(self) -> bool:
        """True if the answer is that the page is elsewhere."""
        moved = 300 <= self.status < 400 and self.status != NOT_MODIFIED
        return moved or self.refresh is not None

    @property
    def location(self) -> str | None:
        """Where a redirect leads, a normalised URL."""
        return self.refresh or self.download.location

    def set_fetch_time(self) -> None:
        """Set the time of the fetch."""
        self.fetched_at = datetime.now(UTC).isoformat(timespec="milliseconds")

    def to_row(self) -> PageRow:
        """Return the page's row for the store."""
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
            digest=None if self.digest is None else self.digest + self.minhash,
            duplicate_of=self.duplicate_id,
            error=self.error,
            links=self.links,
            dropped=self.dropped,
        )


def make_answer_row(view: PageView, download: Download) -> AnswerRow:
    """Return what the next crawl needs of a page: its text, headings and validators.

    The digest is of the text alone: many a server sends other bytes with every answer.
    """
    text = " ".join(view.tokens).encode("utf-8", "replace")
    return AnswerRow(
        content=hashlib.blake2b(text, digest_size=12).digest(),
        headings="\n".join(view.headings[:_HEADINGS]),
        etag=download.etag,
        last_modified=download.last_modified,
    )
