"""A finished crawl as knowledge is learned from it: plain rows, whatever store they are from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class FetchRecord(NamedTuple):
    """One fetch of a crawl.

    Attributes
    ----------
    url : normalised
    status, relevance : as in the crawl's store
    content : digest of the page's text; None if it was no page, or a duplicate
    etag, last_modified : validators of the answer
    day : time of the fetch, in days; what it counts from does not matter
    texts : title and headings, where it was a page
    anchors : of links into it
    hub, authority : scores over the greatest of the crawl
    """

    url: str
    status: int
    relevance: float
    content: bytes | None
    etag: str | None
    last_modified: str | None
    day: float
    texts: tuple[str, ...]
    anchors: tuple[str, ...]
    hub: float
    authority: float


@dataclass(frozen=True)
class CrawlRecord:
    """A finished crawl, as it is learned.

    Attributes
    ----------
    id : tells it from every other crawl
    name : for people
    topic, critic, critic_name : what was looked for, and who judged
    replay : of a recorded web: time is counted in crawls, since a recording has no clock
    fetches : in any order
    waiting : URLs never fetched, with their scores in [0, 1]
    graduate : what its apprentice has learned, if one crawled
    """

    id: str
    name: str
    topic: str
    critic: str
    critic_name: str
    replay: bool
    learned_at: str
    fetches: Iterable[FetchRecord]
    waiting: Iterable[tuple[str, float]] = ()
    graduate: bytes | None = None


class UpdateCounts(NamedTuple):
    """What learning a crawl has brought: its fetches, and how many were new, changed, in vain."""

    fetches: int = 0
    relevant: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    failed: int = 0
