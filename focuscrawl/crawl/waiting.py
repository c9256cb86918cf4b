"""Waiting for better links at busy hosts, and the measure "priority fidelity".

Priority fidelity is the share of fetches that requested the best known URL.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from focuscrawl.crawl.part import Part
from focuscrawl.frontier.patience import Patience
from focuscrawl.store.history import History
from focuscrawl.store.schema import QUEUED

if TYPE_CHECKING:
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit


#: kind of the event that a better link waited for its busy host; the detail is that host
OVERTAKEN = "overtaken"
SCORE_TOLERANCE = 0.05  # smaller differences of scores do not count
_MAX_BUSY_HOSTS = 8  # busy hosts that are searched for a better link
_ABOVE_LINKS = sys.float_info.max  # a score above that of every link
_MAX_SEED_HOSTS = 64  # busy hosts that are searched for start pages
_MAX_SEED_WAIT = 30.0  # seconds that links wait for the host of a start page


class PatientOrder(Part):
    """Makes the crawl wait for a busy host that has a start page or a much better link.

    The crawl does not wait for a start page if its host is blocked for more than 30 seconds, for
    example after errors. The crawl waits for a better link by the rule of
    `focuscrawl.frontier.patience.Patience`. The rule applies if scores are expected relevances and
    hosts have a delay.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        config = crawl.config
        patient = config.patience > 0.0 and config.delay > 0.0 and crawl.strategy.expects_relevance
        self._patience = Patience(crawl.frontier, config.patience) if patient else None

    def wait(self, now: float) -> float | None:
        """Return inf if the crawl should wait for a busy host, or None to fetch a page now."""
        crawl = self._crawl
        if crawl.is_at_capacity:
            return None  # no fetch can start now in any case
        best = crawl.peek(now)
        score = math.inf if best is None else _relevance(crawl, best)
        if score == math.inf:
            return None
        if self._is_seed_waiting(now):
            return math.inf
        if self._patience is None or score >= self._patience.min_score(
            score, crawl.budget_left, now
        ):
            return None
        return math.inf

    def before_record(self, visit: PageVisit) -> None:
        """Report the scores of a page's new links to the patience model."""
        if self._patience is not None:
            self._patience.add_page(visit.newly_queued)

    def _is_seed_waiting(self, now: float) -> bool:
        # a start page, or the redirect target of a start page
        urls = self._crawl.urls
        return any(
            each.seconds <= _MAX_SEED_WAIT
            and urls.depth(each.url) == 0
            and urls.state(each.url) == QUEUED  # hubs that are fetched again do not count
            for each in self._crawl.frontier.busy_host_links(now, _ABOVE_LINKS, _MAX_SEED_HOSTS)
        )


class PriorityFidelity(Part):
    """Records each fetch during which a clearly better link waited for its busy host.

    *Priority fidelity* is the share of fetches during which no clearly better link waited. Scores
    of start pages and redirect targets are not compared. If a strategy's scores are not expected
    relevances, no scores are compared.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._better_hosts: dict[int, str] = {}  # by URL in flight: host of the better link

    def reset(self) -> None:
        """Count the stored events."""
        self._crawl.overtaken = len(History(self._crawl.store).events(OVERTAKEN))

    def compare(self, url_id: int, best: int) -> None:
        """Compare the best score of available hosts with the best links of busy hosts.

        Parameters
        ----------
        url_id, best : int
            URL that will be fetched; URL with the best score that may be fetched now.
        """
        crawl = self._crawl
        # URLs that were queued again or excluded are no longer in flight
        self._better_hosts = {
            url: host for url, host in self._better_hosts.items() if url in crawl.in_flight
        }
        self._better_hosts.pop(url_id, None)
        score = _relevance(crawl, best)
        if score == math.inf or not crawl.strategy.expects_relevance:
            return
        for each in crawl.frontier.busy_host_links(0.0, score + SCORE_TOLERANCE, _MAX_BUSY_HOSTS):
            if each.score < math.inf:
                self._better_hosts[url_id] = crawl.urls.host_name(each.url)
                return

    def before_record(self, visit: PageVisit) -> None:
        """Add an event to the visit if a better link waited for its host."""
        host = self._better_hosts.pop(visit.url_id, None)
        if host is not None:
            self._crawl.overtaken += 1
            visit.events.append((OVERTAKEN, host))
            visit.better_host = host


def _relevance(crawl: CrawlState, url_id: int) -> float:
    """Return the expected relevance of a URL; its score is lower if the URL comes last."""
    return max(crawl.frontier.halved_score(url_id), 0.0)
