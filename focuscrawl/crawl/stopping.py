"""When a crawl stops: budget, stop rules, completeness."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from focuscrawl.completeness.recall_estimate import FILE, EstimateRecord, Estimator
from focuscrawl.crawl.part import Part
from focuscrawl.critic.protocol import RELEVANT

if TYPE_CHECKING:
    from focuscrawl.completeness.recall_estimate import Estimate
    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit


RULE = "rule"  # kind of the event that a rule of the user's ends the crawl
_FIRST = 20  # fetches before the first estimate
_EVERY, _SHARE = 10, 50  # fetches between two: so many, or one in so many of those made


class StopRules(Part):
    """Ends a crawl by the first rule that applies; keeps the budget exact."""

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl

    def poll(self, now: float) -> bool:
        """Tell whether all that is left of the budget is in flight."""
        return self._crawl.is_budget_exhausted

    def stop_reason(self) -> str | None:
        """Return the rule that ends the crawl."""
        crawl, config = self._crawl, self._crawl.config
        if config.budget and crawl.budget_spent >= config.budget:
            return "budget"
        if config.stagnation and crawl.fetched - crawl.last_relevant >= config.stagnation:
            return "no_relevant_page"
        if not crawl.in_flight and len(crawl.frontier) == crawl.frontier.n_at_skipped_hosts:
            if len(crawl.urls) and not crawl.succeeded:
                return "seeds_unreachable"  # whatever is known is a seed, or where one redirects
            if crawl.consecutive_failures and not crawl.any_judged:
                return "error"  # the critic or the strategy failed on every page of this run
            return "hosts_unavailable" if len(crawl.frontier) else "frontier_empty"
        return None


class Completeness(Part):
    """Estimates recall after so many fetches: a replay has the same estimates."""

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._rules = crawl.config.stop
        self._started = time.monotonic()
        self._record: EstimateRecord | None = None

    def reset(self) -> None:
        """Forget every fetch."""
        self._estimator = Estimator(promises=self._crawl.strategy.expects_relevance)
        self._due = _FIRST

    def restore(self, fetch: RestoredFetch) -> None:
        """Take in a fetch of an earlier run."""
        stored = fetch.stored
        if not stored.again:
            relevant = stored.relevance > RELEVANT
            targets = [link.target for link in stored.links]
            self._estimator.visited(
                stored.url, stored.referrer, stored.score, targets, relevant=relevant
            )
            self._is_due()

    def on_restored(self) -> None:
        """Continue the estimates of the earlier run, unless the topic has changed."""
        path, fetched = self._crawl.folder.path / FILE, self._estimator.fetched
        again = self._record is not None
        self._record = EstimateRecord(path, 0 if again else fetched)
        if fetched >= _FIRST and self._record.latest is None:
            self._estimate()

    def on_recorded(self, visit: PageVisit) -> None:
        """Take in a fetch, and estimate if it is time."""
        referrer = self._crawl.urls.referrer_id(visit.url_id)
        relevant = visit.relevance > RELEVANT
        targets = [link.target for link in visit.link_rows]
        self._estimator.visited(visit.url_id, referrer, visit.score, targets, relevant=relevant)
        if self._is_due():
            self._estimate()

    def close(self) -> None:
        """Record the rule that ends the crawl, if one does; estimate again if nothing waits."""
        reason = self.stop_reason()
        if reason is not None:
            self._crawl.record_event(RULE, self._rules.in_words(reason, self.latest))
        crawl, fetched = self._crawl, self._estimator.fetched
        last = 0 if self.latest is None else self.latest.fetched
        if not len(crawl.frontier) and not crawl.in_flight and _FIRST <= fetched > last:
            self._estimate()

    def stop_reason(self) -> str | None:
        """Return which of the configuration's rules ends the crawl."""
        if not self._rules:
            return None
        return self._rules.reason(self.latest, time.monotonic() - self._started)

    @property
    def latest(self) -> Estimate | None:
        """The last estimate; None before the first."""
        return None if self._record is None else self._record.latest

    def _is_due(self) -> bool:
        fetched = self._estimator.fetched
        if fetched < self._due:
            return False
        self._due = fetched + max(_EVERY, fetched // _SHARE)
        return True

    def _estimate(self) -> None:
        assert self._record is not None
        frontier = self._crawl.frontier
        scores = frontier.scores(frontier.queued())
        self._record.add(self._estimator.estimate(scores, self._rules.next_fetches))
