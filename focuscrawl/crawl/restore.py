"""Take up a crawl where its store ends."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from focuscrawl.store import NewUrl, schema
from focuscrawl.store.schema import QUEUED

if TYPE_CHECKING:
    from focuscrawl.crawl.crawl import Crawl

_CHUNK = 50_000  # links given to the evidence rule at once


def restore(crawl: Crawl) -> None:
    """Load URLs, frontier, duplicates and evidence from the crawl's store.

    What was under way when the crawl stopped is queued, since only its page's record would have
    changed that. Links are taken in the order they were found, so that scores come out as they
    would have in a crawl that was never interrupted, to the last bit.
    """
    _load_urls(crawl)
    _load_pages(crawl)
    _load_links(crawl)


def _load_urls(crawl: Crawl) -> None:
    u, h = schema.url.c, schema.host.c
    statement = (
        sa.select(u.id, u.url, u.host, u.depth, u.referrer, u.score, u.state, h.name)
        .join(schema.host, h.id == u.host)
        .order_by(u.id)
    )
    queued: list[tuple[int, int, float]] = []
    for columns in crawl.store.rows(statement):
        row = NewUrl._make(columns[:-1])
        crawl.urls.load(row, host_name=columns[-1])
        if row.state == QUEUED:
            score = np.inf if row.score is None else row.score
            queued.append((row.id, row.host, score))
    if queued:
        urls, hosts, scores = zip(*queued, strict=True)
        crawl.frontier.load(
            np.array(urls, dtype=np.int64), np.array(hosts, dtype=np.int64), np.array(scores)
        )


def _load_pages(crawl: Crawl) -> None:
    p = schema.page.c
    statement = sa.select(
        p.seq, p.url, p.relevance, p.canonical, p.digest, p.duplicate_of
    ).order_by(p.seq)
    for row in crawl.store.rows(statement):
        crawl.count(row.seq, row.relevance)
        if row.digest is not None and row.duplicate_of is None:
            crawl.duplicates.add(row.url, row.digest, crawl.names_of(row.url, row.canonical))


def _load_links(crawl: Crawl) -> None:
    link = schema.link.c
    statement = sa.select(link.id, link.target, link.score).order_by(link.id)
    rows = crawl.store.rows(statement)
    while chunk := list(itertools.islice(rows, _CHUNK)):
        crawl.links = chunk[-1].id + 1
        followed = [(row.target, row.score) for row in chunk if row.score is not None]
        if followed:
            targets, scores = zip(*followed, strict=True)
            crawl.strategy.evidence.add(np.array(targets, dtype=np.int64), np.array(scores))
