"""What goes into the loop and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass

RELEVANT = 0.5  # a page counts as relevant above (METHODS 4.4)
NOT_MODIFIED = 304  # HTTP status: the answer is the one known
NOINDEX = "noindex"  # kind of the event that a page asks not to be indexed
META_REFRESH = "meta refresh"  # the error of a page that only leads to another


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
    again: bool = False


@dataclass(frozen=True, slots=True)
class Download:
    """What came back.

    Attributes
    ----------
    status : HTTP status; 0 where none was received
    body : entity, decoded
    content_type : media type without parameters, None if the server named none
    encoding : the charset parameter of Content-Type, if any
    location : where a redirect leads, a normalised URL
    size : bytes of the entity
    etag, last_modified : header fields that a later request can ask by
    robots : X-Robots-Tag header fields
    """

    status: int
    body: bytes = b""
    content_type: str | None = None
    encoding: str | None = None
    location: str | None = None
    size: int = 0
    etag: str | None = None
    last_modified: str | None = None
    robots: tuple[str, ...] = ()


@dataclass(slots=True)
class Visit:
    """One fetch and what became of it: a row of the store's view `pages`, and Scrapy's item."""

    seq: int
    url: str
    status: int
    relevance: float
    topic: str | None
    depth: int
    score: float | None
    referrer: str | None
    fetched_at: str
    content_type: str | None
    bytes: int
    title: str | None
    duplicate_of: str | None
    error: str | None
    links: int
    dropped: int
