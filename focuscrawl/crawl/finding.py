"""What a visit finds out about its page."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from focuscrawl.crawl.types import Visit
from focuscrawl.store import PageRow
from focuscrawl.store.records import LinkRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from focuscrawl.crawl.types import Fetched
    from focuscrawl.crawl.urltable import UrlTable
    from focuscrawl.strategies import Expansion, JudgedPage


@dataclass(slots=True)
class Finding:
    """Filled step by step while a page is visited; columns as in `focuscrawl.store.schema.page`.

    Attributes
    ----------
    probabilities : float64 (n_classes,), posteriors of the critic's classes, if it has any
    links, followed : links on the page, and how many of them lead into the crawl
    link_rows : these
    memo : what the strategy wants back of them
    """

    relevance: float = 0.0
    probabilities: NDArray[np.float64] | None = None
    topic: str | None = None
    title: str | None = None
    canonical: str | None = None
    digest: bytes | None = None
    duplicate_of: int | None = None
    error: str | None = None
    links: int = 0
    followed: int = 0
    link_rows: list[LinkRow] = field(default_factory=list)
    memo: bytes | None = None

    def follow(self, page: JudgedPage, expansion: Expansion, first: int, version: int) -> None:
        """Take in the links of the page with the scores a strategy gave them.

        Parameters
        ----------
        first : number of the first of them
        version : of the model that scored them
        """
        columns = zip(
            page.links.tolist(),
            page.targets.tolist(),
            page.view.links.left[page.links].tolist(),
            expansion.link_scores.tolist(),
            strict=True,
        )
        self.link_rows = [
            LinkRow(
                id=number,
                source=page.url,
                target=target,
                anchor=page.view.links.anchors[i],
                dom_position=left,
                score=score if math.isfinite(score) else None,
                model_version=version,
            )
            for number, (i, target, left, score) in enumerate(columns, first)
        ]
        self.followed, self.memo = len(self.link_rows), expansion.memo

    def row(self, seq: int, url: int, score: float | None, fetched: Fetched) -> PageRow:
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
