"""What keeps a crawl out of traps: a host and a pattern of URLs must earn their fetches."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from focuscrawl.crawl.part import Part
from focuscrawl.crawl.quotas import Quotas
from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit

#: kinds of events
LIMITED, RAISED = "limited", "raised"


class Traps(Part):
    """Sees every fetch; defers URLs whose host or pattern has had its share.

    Nothing is lost: what is deferred waits until nothing else does; then the limits of all are
    doubled. So a crawl whose links are all on one host goes on as it would without limits.

    Attributes
    ----------
    quotas : as they are now
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self.quotas = Quotas()

    def reset(self) -> None:
        """Forget all quotas; what they deferred is let go."""
        self.quotas = Quotas()
        self._crawl.frontier.readmit(self._crawl.frontier.deferred().tolist())
        raised = History(self._crawl.store).events(RAISED)
        self._raised = Counter(event.seq for event in raised)

    def restore(self, fetch: RestoredFetch) -> None:
        """Count a fetch of an earlier run, and raise the limits where that run did."""
        stored = fetch.stored
        if stored.again:
            return
        self._count(stored.url, stored.relevance, repeats=fetch.repeats)
        for _ in range(self._raised[stored.seq]):
            self.quotas.raise_all()

    def on_page(self, visit: PageVisit) -> None:
        """Count a fetch."""
        visit.events += self._count(visit.number, visit.relevance, repeats=visit.repeats)

    def relent(self) -> bool:
        """Raise the limits of all, if every URL that waits is deferred."""
        if not self._crawl.frontier.all_deferred:
            return False
        for quota in self.quotas.raise_all():
            self._readmit(quota.held)
        times = self.quotas.generosity
        self._crawl.note(RAISED, f"all limits are {times} times as high: nothing else waits")
        return True

    def _count(self, number: int, relevance: float, *, repeats: bool) -> list[tuple[str, str]]:
        """Count a fetch; return the events of it."""
        events = []
        worth = self._crawl.strategy.worth(number, relevance)
        url, referrer = self._crawl.urls[number], self._crawl.urls.referrer(number)
        earns = worth > RELEVANT and not repeats
        for quota in self.quotas.count(url, referrer, earns=earns, repeats=repeats):
            if not quota.closed:
                self._readmit(quota.held)
            elif not quota.told:
                quota.told = True
                events.append((LIMITED, f"{quota.name}: {quota.in_words}; other links come first"))
        return events

    def admits(self, number: int) -> bool:
        """Tell whether neither the URL's host nor its pattern has had its share."""
        quota = self.quotas.barred(self._crawl.urls[number])
        if quota is not None:
            quota.held.append(number)
        return quota is None

    def _readmit(self, held: list[int]) -> None:
        self._crawl.frontier.readmit(held)
        held.clear()
