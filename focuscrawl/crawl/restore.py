"""Take up a crawl where its store ends."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from focuscrawl.crawl.duplicates import DIGEST, Duplicates
from focuscrawl.crawl.parts.distilling import DISTILLED
from focuscrawl.crawl.parts.traps import RAISED
from focuscrawl.store import NewUrl, schema
from focuscrawl.store.history import LinkHistory, fetched_again
from focuscrawl.strategies import RecalledPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.crawl.crawl import Crawl

_CHUNK = 50_000  # URLs taken in at once


def restore(crawl: Crawl) -> None:
    """Load URLs, frontier, duplicates and evidence from the crawl's store.

    What was under way when the crawl stopped is queued, since only its page's record would have
    changed that. Links are taken in the order they were found, so that scores come out as they
    would have in a crawl that was never interrupted, to the last bit.
    """
    _load_urls(crawl)
    _recall(crawl)


def reload(crawl: Crawl) -> None:
    """Go on with a new strategy, and with judgements and scores that are in the store by now.

    The crawl has recorded all it knows, and fetches nothing meanwhile.
    """
    u = schema.url.c
    rows = sa.select(u.id, u.score, u.state).order_by(u.id)
    for row in crawl.store.rows(rows):
        number, score, state = row.id, row.score, row.state
        kept, before = crawl.urls.score(number), crawl.urls.state(number)
        if (kept, before) == (score, state):
            continue
        crawl.urls.change(number, state, score)
        if state == schema.QUEUED:
            first = np.inf if score is None else score
            crawl.frontier.push(number, crawl.urls.host(number), first)
        elif before == schema.QUEUED:
            crawl.frontier.remove(number)
    crawl.duplicates = Duplicates()
    _recall(crawl)
    crawl.begin_lesson()


def _recall(crawl: Crawl) -> None:
    """Let everything but the frontier go through the crawl again."""
    learned_at = _load_model(crawl)
    urls, scores = _load_pages(crawl, learned_at)
    if crawl.strategy.learns:
        crawl.frontier.rescore(urls, scores)
    e = schema.events.c
    raised = sa.select(sa.func.max(e.seq)).where(e.kind == DISTILLED)
    crawl.distilling.resume(crawl.urls, next(crawl.store.rows(raised))[0] or 0)


def _load_urls(crawl: Crawl) -> None:
    u, h = schema.url.c, schema.host.c
    hosts = sa.select(h.name).order_by(h.id)
    crawl.urls.load_hosts(row.name for row in crawl.store.rows(hosts))
    urls = sa.select(u.id, u.url, u.host, u.depth, u.referrer, u.score, u.state).order_by(u.id)
    rows = map(NewUrl._make, crawl.store.rows(urls))
    while chunk := list(itertools.islice(rows, _CHUNK)):
        crawl.urls.load(chunk)
    crawl.frontier.load(*crawl.urls.queued())


def _load_pages(crawl: Crawl, learned_at: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Let counters, duplicates and the strategy go through the pages again.

    Parameters
    ----------
    learned_at : fetches when the last lesson was adopted, 0 if there was none

    Returns
    -------
    The URLs that the strategy has scored since, and their scores: int64 (m,), float64 (m,)
    """
    scores = np.full(len(crawl.urls), np.nan)
    p, m = schema.page.c, schema.memo.c
    pages = (
        sa.select(
            p.seq, p.url, p.status, p.relevance, p.canonical, p.digest, p.duplicate_of, m.data
        )
        .outerjoin(schema.memo, m.seq == p.seq)
        .order_by(p.seq)
    )
    found, again = LinkHistory(crawl.store), fetched_again(crawl.store)
    e = schema.events.c
    raises = sa.select(e.seq).where(e.kind == RAISED)
    raised_at = Counter(row.seq for row in crawl.store.rows(raises))
    for row in crawl.store.rows(pages):
        crawl.count(row.seq, row.relevance, row.status)
        crawl.strategy.observe(row.url, row.relevance, row.duplicate_of)
        if 300 <= row.status < 400:
            crawl.redirects.add(row.url)
        links = found.of(row.url)
        targets = [link.target for link in links]
        crawl.distilling.recall(row.url, row.relevance, row.duplicate_of, targets)
        urls, new = _recall_links(crawl, row, links)
        repeats = row.duplicate_of is not None
        crawl.traps.recall(row.seq, row.url, row.relevance, row.digest, repeats=repeats)
        for _ in range(raised_at[row.seq]):
            crawl.traps.recall_raise()
        if row.seq > learned_at:
            scores[urls] = new
            crawl.begin_lesson()  # one was under way if it had begun when this page was visited
        for later in again.get(row.seq, ()):
            links = found.of(later.url) if later.links else []
            crawl.distilling.found_again(later.url, [link.target for link in links])
            urls, new = _recall_links(crawl, later, links)
            if row.seq > learned_at:
                scores[urls] = new
        if row.seq == learned_at:
            if crawl.strategy.learns:
                urls, new = crawl.strategy.rescore()
                scores[urls] = new
            crawl.begin_lesson()
        if row.digest is not None and row.duplicate_of is None:
            names = Duplicates.names(crawl.urls[row.url], row.canonical)
            crawl.duplicates.add(row.url, row.digest[:DIGEST], names)
    scored = np.flatnonzero(~np.isnan(scores))
    return scored, scores[scored]


def _recall_links(
    crawl: Crawl, fetch: sa.Row[Any], links: Sequence[sa.Row[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Let the strategy have the links again that a fetch has found; return its scores."""
    if not links and fetch.data is None:
        return np.zeros(0, np.int64), np.zeros(0)
    if links:
        crawl.links = links[-1].id + 1
    return crawl.strategy.recall(
        RecalledPage(
            url=fetch.url,
            seq=fetch.seq,
            relevance=fetch.relevance,
            targets=np.array([link.target for link in links], dtype=np.int64),
            link_scores=np.array(
                [-np.inf if each.score is None else each.score for each in links]
            ),
            memo=fetch.data,
        )
    )


def _load_model(crawl: Crawl) -> int:
    """Give a learner the model of its last lesson; return when it was adopted."""
    m = schema.models.c
    statement = (
        sa.select(m.state, m.trained_at_seq)
        .where(m.state.is_not(None))
        .order_by(m.version.desc())
        .limit(1)
    )
    if crawl.strategy.learns:
        for row in crawl.store.rows(statement):
            adopted_at = crawl.strategy.load(row.state)
            return int(row.trained_at_seq if adopted_at is None else adopted_at)
    return 0
