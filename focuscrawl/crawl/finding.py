"""What a visit finds out about its page."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import repeat
from typing import TYPE_CHECKING

from focuscrawl.crawl.visit import NOINDEX, Fetch, Visit
from focuscrawl.store import AnswerRow, PageRow, VisitRecord
from focuscrawl.store.records import LinkRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.crawl.visit import Download
    from focuscrawl.page import PageView
    from focuscrawl.strategies import JudgedPage


_HEADINGS = 50  # of a page


@dataclass(slots=True)
class Finding:
    """Filled step by step while a page is visited; columns as in `focuscrawl.store.schema.page`.

    Attributes
    ----------
    probabilities : float64 (n_classes,), posteriors of the critic's classes, if it has any
    links, followed : links on the page, and how many of them lead into the crawl
    noindex : the page asks not to be indexed, and is obeyed
    digest : as in the store: of the body, and the page's sketch if there is one
    resembles : the earlier page that says nearly the same, and how much the two are alike
    link_rows : these
    memo : what the strategy wants back of them
    answer : what the next crawl wants to know of the page
    """

    relevance: float = 0.0
    probabilities: NDArray[np.float64] | None = None
    topic: str | None = None
    title: str | None = None
    canonical: str | None = None
    digest: bytes | None = None
    duplicate_of: int | None = None
    resembles: tuple[int, float] | None = None
    error: str | None = None
    links: int = 0
    followed: int = 0
    noindex: bool = False
    link_rows: list[LinkRow] = field(default_factory=list)
    memo: bytes | None = None
    answer: AnswerRow | None = None

    def row(self, seq: int, url: int, score: float | None, fetched: Download) -> PageRow:
        """Return the page's row for the store."""
        return PageRow(
            seq=seq,
            url=url,
            status=fetched.status,
            relevance=self.relevance,
            topic=self.topic,
            score=score,
            fetched_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            content_type=fetched.content_type,
            size=fetched.size,
            title=self.title,
            canonical=self.canonical,
            digest=self.digest,
            duplicate_of=self.duplicate_of,
            error=self.error,
            links=self.links,
            dropped=self.links - self.followed,
        )

    def record(self, row: PageRow, events: list[tuple[int, str, str]]) -> VisitRecord:
        """Return all that the fetch changes, for the store."""
        if self.noindex:
            events = [*events, (row.seq, NOINDEX, self.title or "")]
        return VisitRecord(
            row, links=self.link_rows, memo=self.memo, answer=self.answer, events=events
        )


def answer_of(view: PageView, fetched: Download) -> AnswerRow:
    """Return what the next crawl wants to know of a page: its text, headings and validators.

    The digest is of the text alone: bytes that nobody reads change with every answer of many a
    server.
    """
    text = " ".join(view.tokens).encode("utf-8", "replace")
    return AnswerRow(
        content=hashlib.blake2b(text, digest_size=12).digest(),
        headings="\n".join(view.headings[:_HEADINGS]),
        etag=fetched.etag,
        last_modified=fetched.last_modified,
    )


def rows_of(
    judged: JudgedPage, scores: NDArray[np.float64], version: int, first: int
) -> list[LinkRow]:
    """Return the rows of a page's links, numbered from `first` on.

    Parameters
    ----------
    scores : float64 (n,), of the links
    version : of the model that gave them
    """
    n = len(judged.links)
    anchors = judged.view.links.anchors
    columns = zip(
        range(first, first + n),
        repeat(judged.url, n),
        judged.targets.tolist(),
        [anchors[i] for i in judged.links.tolist()],
        judged.view.links.left[judged.links].tolist(),
        [score if math.isfinite(score) else None for score in scores.tolist()],
        repeat(version, n),
        strict=True,
    )
    return [*map(LinkRow._make, columns)]


def fetch_of(number: int, urls: UrlTable) -> Fetch:
    """Return a URL as it is given out to be fetched."""
    return Fetch(
        id=number,
        url=urls[number],
        host=urls.host_name(number),
        depth=urls.depth(number),
        score=urls.score(number),
        referrer=urls.referrer(number),
    )


def visit_of(row: PageRow, urls: UrlTable) -> Visit:
    """Return a page's row as users see it, with URLs instead of numbers."""
    return Visit(
        seq=row.seq,
        url=urls[row.url],
        status=row.status,
        relevance=row.relevance,
        topic=row.topic,
        depth=urls.depth(row.url),
        score=row.score,
        referrer=urls.referrer(row.url),
        fetched_at=row.fetched_at,
        content_type=row.content_type,
        bytes=row.size,
        title=row.title,
        duplicate_of=None if row.duplicate_of is None else urls[row.duplicate_of],
        error=row.error,
        links=row.links,
        dropped=row.dropped,
    )
