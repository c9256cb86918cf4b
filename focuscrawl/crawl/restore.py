"""Takes up a crawl where its store ends."""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.part import RestoredFetch
from focuscrawl.crawl.redirects import has_moved
from focuscrawl.crawl.state import ASIDE, FAILED_IN_A_ROW
from focuscrawl.crawl.visit import RENDERED
from focuscrawl.store.history import History
from focuscrawl.store.schema import QUEUED
from focuscrawl.store.soundness import taking_in
from focuscrawl.strategies import RecalledPage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.store.history import StoredFetch
    from focuscrawl.strategies import Strategy

logger = logging.getLogger(__name__)

_CHUNK = 50_000  # URLs taken in at once
_NOTHING = np.zeros(0, np.int64), np.zeros(0)


def restore(crawl: CrawlState) -> None:
    """Load URLs, frontier, duplicates and evidence from the crawl's store.

    What was under way when the crawl stopped is queued, since only its page's record would have
    changed that. Links are taken in the order they were found, so that scores come out as they
    would have in a crawl that was never interrupted, to the last bit.

    Raises
    ------
    UserError
        The store is damaged: what it holds does not fit together.
    """
    history = History(crawl.store)
    with taking_in(crawl.store.where):
        crawl.urls.load_hosts(history.hosts())
        rows = history.urls()
        while chunk := list(itertools.islice(rows, _CHUNK)):
            crawl.urls.load(chunk)
        crawl.frontier.load(*crawl.urls.queued())
        _recall(crawl, history)


def reload(crawl: CrawlState) -> None:
    """Go on with a new strategy, and with judgements and scores that are in the store by now.

    The crawl has recorded all it knows, and fetches nothing meanwhile.
    """
    history = History(crawl.store)
    for row in history.urls():
        number, score, state = row.id, row.score, row.state
        kept, before = crawl.urls.score(number), crawl.urls.state(number)
        if (kept, before) == (score, state):
            continue
        crawl.urls.change(number, state, score)
        if state == QUEUED:
            first = np.inf if score is None else score
            crawl.frontier.push(number, crawl.urls.host(number), first)
        elif before == QUEUED:
            crawl.frontier.remove(number)
    crawl.reset()
    _recall(crawl, history)


def _recall(crawl: CrawlState, history: History) -> None:
    """Let everything but the frontier go through the crawl again."""
    for part in crawl.parts:
        part.reset()
    fetches = history.fetches()
    fetch = next(fetches, None)
    failed_in_a_row: list[str] = []
    while fetch is not None:
        following = next(fetches, None)
        last_of_seq = following is None or following.seq > fetch.seq
        if fetch.again:
            crawl.count_again(fetch.status)
        else:
            crawl.count(fetch.seq, fetch.relevance, fetch.status)
            if has_moved(fetch.status, fetch.error):
                crawl.redirects.add(fetch.url)
        urls, scores = _told(crawl.strategy, fetch, failed_in_a_row)
        if fetch.links:
            crawl.links = fetch.links[-1].id + 1
        repeats = fetch.duplicate_of is not None
        restored = RestoredFetch(fetch, repeats, last_of_seq, urls, scores)
        for part in crawl.parts:
            part.restore(restored)
        if fetch.digest is not None and not repeats:
            names = Duplicates.names(crawl.urls[fetch.url], fetch.canonical)
            crawl.duplicates.add(fetch.url, fetch.digest, names)
        fetch = following
    for _ in history.events(ASIDE, RENDERED):
        crawl.count_again(200)
    for part in crawl.parts:
        part.restored()


def _told(
    strategy: Strategy, fetch: StoredFetch, failed_in_a_row: list[str]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Tell a strategy of a fetch; one that it fails on is left out, unless many in a row are."""
    try:
        if not fetch.again:
            strategy.observe(fetch.url, fetch.relevance, fetch.duplicate_of)
        scores = recalled(strategy, fetch)
    except Exception as error:
        failed_in_a_row.append(fetch.name)
        if len(failed_in_a_row) >= FAILED_IN_A_ROW:
            raise
        logger.warning("%s is left out of the past: the strategy failed: %r", fetch.name, error)
        return _NOTHING
    if fetch.links:
        failed_in_a_row.clear()
    return scores


def recalled(
    strategy: Strategy, fetch: StoredFetch
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Let a strategy have the links of a fetch again; return the URLs and their scores."""
    if not fetch.links and fetch.memo is None:
        return _NOTHING
    scores = [-np.inf if link.score is None else link.score for link in fetch.links]
    return strategy.recall(
        RecalledPage(
            url=fetch.url,
            seq=fetch.seq,
            relevance=fetch.relevance,
            targets=np.array([link.target for link in fetch.links], dtype=np.int64),
            link_scores=np.array(scores),
            memo=fetch.memo,
        )
    )
