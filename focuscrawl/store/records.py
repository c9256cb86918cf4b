"""What the crawl hands to the store: plain rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class NewUrl(NamedTuple):
    """A URL seen for the first time; ids are dense from 0 in order of discovery."""

    id: int
    url: str
    host: int
    depth: int
    referrer: int | None
    score: float | None
    state: int


class LinkRow(NamedTuple):
    """One link of a page, to a URL that entered the store."""

    id: int
    source: int
    target: int
    anchor: str
    dom_position: int
    score: float | None
    model_version: int


@dataclass(frozen=True, slots=True)
class PageRow:
    """One fetch; columns as in `focuscrawl.store.schema.page`."""

    seq: int
    url: int
    status: int
    relevance: float
    topic: str | None
    score: float | None
    fetched_at: str
    content_type: str | None
    size: int
    title: str | None = None
    canonical: str | None = None
    digest: bytes | None = None
    duplicate_of: int | None = None
    error: str | None = None
    links: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """What the next crawl wants to know of a page; columns as in the table ``answer``."""

    content: bytes
    headings: str
    etag: str | None
    last_modified: str | None


@dataclass(frozen=True, slots=True)
class RevisitRow:
    """A page to be fetched once more, or that was; columns as in the table ``revisit``."""

    id: int
    url: int
    asked_at: int
    etag: str | None
    last_modified: str | None
    seq: int | None = None
    status: int | None = None
    relevance: float | None = None
    fetched_at: str | None = None
    size: int = 0
    error: str | None = None
    links: int = 0
    first_link: int | None = None
    memo: bytes | None = None


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One lesson; columns as in `focuscrawl.store.schema.models`."""

    version: int
    trained_at_seq: int
    instances: int
    metrics: str
    state: bytes


@dataclass(slots=True)
class VisitRecord:
    """All that one fetch changes; written in one transaction or not at all.

    Attributes
    ----------
    page : the fetch itself; None where only URLs change (seeds, exclusions)
    hosts : (id, name) of hosts seen for the first time
    urls : URLs seen for the first time
    links : the page's links to URLs of the store
    changes : (url id, score, state) of known URLs of which one of these changed
    memo : what the strategy wants back of the page's links
    answer : what the next crawl wants to know of the page
    model : a lesson
    revisits : pages to be fetched once more, or that were; a row takes the place of an earlier one
    events : (seq, kind, detail)
    """

    page: PageRow | None = None
    hosts: list[tuple[int, str]] = field(default_factory=list)
    urls: list[NewUrl] = field(default_factory=list)
    links: list[LinkRow] = field(default_factory=list)
    changes: list[tuple[int, float | None, int]] = field(default_factory=list)
    memo: bytes | None = None
    answer: AnswerRow | None = None
    model: ModelRow | None = None
    revisits: list[RevisitRow] = field(default_factory=list)
    events: list[tuple[int, str, str]] = field(default_factory=list)
