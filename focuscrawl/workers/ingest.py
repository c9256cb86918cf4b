"""Takes in what the heartbeat brings, a slice at a time, so that the event loop is not held."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED
from focuscrawl.strategies import RecalledPage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from queue import SimpleQueue

    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.workers.duplicates import SharedDuplicates
    from focuscrawl.workers.inbox import Delivery, Links, Outcome, StoredUrl
    from focuscrawl.workers.url_ids import SharedUrlTable

_LINKS = 300  # taken in at once: the event loop stands still meanwhile


class Ingest:
    """What links say, what others fetched, and new shards, on their way into a crawl.

    Attributes
    ----------
    posted : evidence up to this has been taken in; None: nothing has come yet
    """

    def __init__(
        self,
        crawl: CrawlState,
        urls: SharedUrlTable,
        duplicates: SharedDuplicates,
        deliveries: SimpleQueue[Delivery],
    ) -> None:
        self._crawl, self._urls, self._duplicates = crawl, urls, duplicates
        self._deliveries = deliveries
        self._steps: Iterator[None] | None = None
        self.posted: int | None = None

    @property
    def empty(self) -> bool:
        """True while there is nothing to take in."""
        return self._steps is None and self._deliveries.empty()

    def go_on(self, until: float) -> None:
        """Take in what there is, as far as time allows.

        Parameters
        ----------
        until : on the clock of `time.perf_counter`
        """
        deliveries = self._deliveries
        while time.perf_counter() < until:
            if self._steps is None:
                if deliveries.empty():
                    return
                self._steps = self._take_in(deliveries.get())
            if next(self._steps, self) is self:
                self._steps = None

    def _take_in(self, delivery: Delivery) -> Iterator[None]:
        for known in delivery.named:
            self._urls.add_stored(known.url, known.depth)
            yield
        for together in _together(delivery.links):
            self._recall(together)
            yield
        if delivery.taken:
            yield from self._take_over(delivery)
        for outcome in delivery.outcomes:
            self._hear(outcome)
            yield
        self.posted = delivery.posted

    def _recall(self, rows: list[Links]) -> None:
        """Let the strategy know links of pages of other workers, and queue their URLs."""
        if rows[0].names_only:
            self._put_first(rows)
            return
        crawl, urls = self._crawl, self._urls
        pages = []
        for links in rows:
            source = None if links.source is None else urls.number(links.source)
            assert source is not None
            pages.append(
                RecalledPage(
                    url=source,
                    seq=crawl.fetched,
                    relevance=links.relevance,
                    targets=urls.numbers(links.targets),
                    link_scores=links.scores,
                    memo=links.memo,
                )
            )
        found, scores = crawl.strategy.recall_all(pages)
        for number, score in zip(found.tolist(), scores.tolist(), strict=True):
            crawl.queue(number, score)

    def _put_first(self, rows: list[Links]) -> None:
        """Queue URLs that come next wherever they are: start URLs, targets of redirects."""
        crawl, urls = self._crawl, self._urls
        for links in rows:
            for number in urls.numbers(links.targets).tolist():
                if urls.holds(number):
                    crawl.queue(number, math.inf)
                else:
                    urls.come_next_elsewhere(number)

    def _hear(self, outcome: Outcome) -> None:
        crawl, digest = self._crawl, outcome.digest
        if digest is not None:
            self._duplicates.hear(digest, outcome.url)
        number = self._urls.number(outcome.id)
        if number is not None:
            crawl.strategy.hear(number, outcome.relevance)
            if self._urls.holds(number) and digest is not None:
                names = Duplicates.names(outcome.url, outcome.canonical)
                crawl.duplicates.add(number, digest, names)
        if outcome.new:
            if number is None and outcome.minhash:
                number = self._urls.add_stored(outcome.url, 0)
            outcome.number = -1 if number is None else number
            for part in crawl.parts:
                part.heard(outcome)

    def _take_over(self, delivery: Delivery) -> Iterator[None]:
        """Queue the URLs of new shards: those the store has queued, and those links lead to."""
        crawl, urls = self._crawl, self._urls
        queued: dict[int, StoredUrl] = {}
        for known in delivery.theirs:
            number = urls.add_stored(known.url, known.depth)
            if known.state == QUEUED:
                queued[number] = known
            else:  # before the shard is taken: it must not be queued by a page visited meanwhile
                urls.set_stored(number, known.state, known.score)
            yield
        everything = np.arange(len(urls))
        mine = everything[np.isin(urls.shards_of(everything), delivery.taken)]
        scores = np.full(len(urls), np.nan)
        scores[mine] = [math.nan if s is None else s for s in map(urls.score, mine.tolist())]
        yield
        if crawl.strategy.learns:
            waiting, new = crawl.strategy.rescore()
            met = waiting < len(scores)  # what was found since is not in a new shard's way
            waiting, new = waiting[met], new[met]
            keep = ~np.isposinf(scores[waiting])
            scores[waiting[keep]] = new[keep]
            yield
        now = time.monotonic()
        for host in np.unique(urls.hosts()[mine]).tolist():
            # the worker that had it may just have asked it something
            crawl.frontier.hold(host, now + crawl.plan.delay)
        urls.held |= frozenset(delivery.taken)
        for number in mine.tolist():
            if number not in crawl.in_flight and urls.state(number) not in (FETCHED, EXCLUDED):
                self._queue(number, float(scores[number]), queued.get(number))
            yield

    def _queue(self, number: int, score: float, stored: StoredUrl | None) -> None:
        """Queue a URL of a new shard if it waits.

        Parameters
        ----------
        score : by the links known here, NaN without any
        stored : what the store says of it; None: nobody followed a link to it yet
        """
        crawl, urls = self._crawl, self._urls
        if stored is None:
            if not math.isnan(score):
                crawl.queue(number, score)
            return
        if math.isnan(score):  # a start URL, or its links are still on their way
            score = math.inf if stored.score is None else stored.score
        urls.set_stored(number, QUEUED, None if score == math.inf else score)
        crawl.frontier.push(number, urls.host(number), score)


def _together(rows: list[Links]) -> Iterator[list[Links]]:
    """Cut rows up, in their order, into what is taken in at once."""
    some: list[Links] = []
    size = 0
    for links in rows:
        if some and (size >= _LINKS or links.names_only != some[0].names_only):
            yield some
            some, size = [], 0
        some.append(links)
        size += len(links.targets)
    if some:
        yield some
