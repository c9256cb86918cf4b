"""Reasons to stop a crawl: budget, empty frontier, and the user's stop rules."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from focuscrawl.completeness.recall_estimate import (
    ESTIMATES_FILE,
    FIRST_ESTIMATE,
    EstimateLog,
    RecallEstimator,
)
from focuscrawl.crawl.part import Part
from focuscrawl.crawl.target_pages import TargetPages, read_targets
from focuscrawl.critic.protocol import RELEVANT

if TYPE_CHECKING:
    from focuscrawl.completeness.recall_estimate import RecallEstimate, TargetCounts
    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit


RULE = "rule"  # kind of the event that a user's stop rule stops the crawl
_MIN_INTERVAL, _INTERVAL_SHARE = 10, 50  # between estimates: 10 fetches, or 1/50 of all fetches


class StopRules(Part):
    """Stops a crawl when the budget is spent, no relevant page is found, or no URL is queued."""

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl

    def poll(self, now: float) -> bool:
        """Return True if the fetches in flight will use up the rest of the budget."""
        return self._crawl.is_budget_exhausted

    def stop_reason(self) -> str | None:
        """Return the reason to stop the crawl, or None."""
        crawl, config = self._crawl, self._crawl.config
        if config.budget and crawl.budget_spent >= config.budget:
            return "budget"
        if config.stagnation and crawl.fetched - crawl.last_relevant >= config.stagnation:
            return "no_relevant_page"
        if not crawl.in_flight and len(crawl.frontier) == crawl.frontier.n_at_skipped_hosts:
            if len(crawl.urls) and not crawl.succeeded:
                return "seeds_unreachable"  # all known URLs are start pages or redirect targets
            if crawl.consecutive_failures and not crawl.any_judged:
                return "error"  # the critic or the strategy failed on every page of this run
            return "hosts_unavailable" if len(crawl.frontier) else "frontier_empty"
        return None


class Completeness(Part):
    """Estimates recall regularly, and stops the crawl by the user's stop rules.

    The times of the estimates depend only on the number of fetches, so that replays give equal
    estimates.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._rules = crawl.config.stop
        self._started = time.monotonic()
        self._record: EstimateLog | None = None
        self._targets = TargetPages(read_targets(crawl.folder.path), crawl.urls)
        self._valid_from = 0  # fetches; earlier estimates do not know new start pages

    def reset(self) -> None:
        """Discard all fetches."""
        self._estimator = RecallEstimator(
            scores_are_relevance=self._crawl.strategy.expects_relevance
        )
        self._due = FIRST_ESTIMATE

    def add_start_pages(self, n: int) -> None:
        """Let stop rules ignore estimates until `n` new start pages have been fetched."""
        self._valid_from = self._estimator.fetched + n

    def restore(self, fetch: RestoredFetch) -> None:
        """Add a fetch of an earlier run to the recall estimator."""
        stored = fetch.stored
        if not stored.is_revisit:
            relevant = stored.relevance > RELEVANT
            targets = [link.target for link in stored.links]
            self._estimator.add_fetch(
                stored.url, stored.referrer, stored.score, targets, relevant=relevant
            )
            self._is_due()

    def on_restored(self) -> None:
        """Continue the stored recall estimates, which a change of the topic may have replaced."""
        path, fetched = self._crawl.folder.path / ESTIMATES_FILE, self._estimator.fetched
        self._record = EstimateLog(path, fetched)
        if fetched >= FIRST_ESTIMATE and self._record.latest is None:
            self._estimate()

    def on_recorded(self, visit: PageVisit) -> None:
        """Add a fetch to the recall estimator, and estimate the recall if an estimate is due."""
        referrer = self._crawl.urls.referrer_id(visit.url_id)
        relevant = visit.relevance > RELEVANT
        targets = [link.target for link in visit.link_rows]
        self._estimator.add_fetch(visit.url_id, referrer, visit.score, targets, relevant=relevant)
        if self._is_due():
            self._estimate()

    def close(self) -> None:
        """Record the stop rule that applies; estimate the recall again if no URL is queued."""
        reason = self.stop_reason()
        if reason is not None:
            self._crawl.record_event(RULE, self._rules.describe(reason, self.latest, self.found))
        crawl, fetched = self._crawl, self._estimator.fetched
        last = 0 if self.latest is None else self.latest.fetched
        if not len(crawl.frontier) and not crawl.in_flight and FIRST_ESTIMATE <= fetched > last:
            self._estimate()

    def stop_reason(self) -> str | None:
        """Return the stop reason of the user's stop rule that applies now, or None."""
        if not self._rules:
            return None
        estimate, seconds = self.latest, time.monotonic() - self._started
        if estimate is not None and estimate.fetched < self._valid_from:
            estimate = None
        found = None if self._rules.targets is None else self.found
        return self._rules.reason(estimate, seconds, found)

    @property
    def latest(self) -> RecallEstimate | None:
        """The latest estimate of the crawl's recall, or None."""
        return None if self._record is None else self._record.latest

    @property
    def found(self) -> TargetCounts | None:
        """Counts of the target pages, or None for a crawl without target pages."""
        return self._targets.counts() if self._targets else None

    def _is_due(self) -> bool:
        fetched = self._estimator.fetched
        if fetched < self._due:
            return False
        self._due = fetched + max(_MIN_INTERVAL, fetched // _INTERVAL_SHARE)
        return True

    def _estimate(self) -> None:
        assert self._record is not None
        frontier = self._crawl.frontier
        scores = frontier.scores(frontier.queued())
        self._record.add(self._estimator.estimate(scores, self._rules.next_fetches))
