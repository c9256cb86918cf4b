"""Patience for busy hosts, and priority fidelity: how often a fetch was one of the best known."""

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


#: kind of the event that better links waited while a page was fetched; detail: the best's host
OVERTAKEN = "overtaken"
SCORE_TOLERANCE = 0.05  # below the best score known: as good as the best
_LOOK = 8  # busy hosts that may have nothing but redirects first
_ABOVE_LINKS = sys.float_info.max  # as a score
_SEEDS = 64  # busy hosts that are looked at for start pages
_LONGEST = 30.0  # seconds that links wait for a host that a start page waits for


class PatientOrder(Part):
    """Holds back the best link that may be fetched now for better ones of busy hosts.

    Links wait for start pages whose hosts are busy, unless a host takes very long, as one does
    that fails. Otherwise patience decides, see `focuscrawl.frontier.patience.Patience`; only
    where scores are expected relevances, and hosts have a delay.

    Parameters
    ----------
    crawl : its configuration says how patient it is
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        config = crawl.config
        patient = config.patience > 0.0 and config.delay > 0.0 and crawl.strategy.expects_relevance
        self._patience = Patience(crawl.frontier, config.patience) if patient else None

    def wait(self, now: float) -> float | None:
        """Have the crawl wait for a host if a start page or a better link is worth it."""
        crawl = self._crawl
        if crawl.is_at_capacity:
            return None  # whatever there is, nothing is fetched now
        best = crawl.peek(now)
        score = math.inf if best is None else crawl.frontier.score(best)
        if score == math.inf:
            return None
        if self._seed_waits(now):
            return math.inf
        if self._patience is None or score >= self._patience.min_score(
            score, crawl.budget_left, now
        ):
            return None
        return math.inf

    def before_record(self, visit: PageVisit) -> None:
        """Count the links that a page brings."""
        if self._patience is not None:
            self._patience.add_page(visit.newly_queued)

    def _seed_waits(self, now: float) -> bool:
        # a start page, or the target of one that redirects
        urls = self._crawl.urls
        return any(
            each.seconds <= _LONGEST
            and urls.depth(each.url) == 0
            and urls.state(each.url) == QUEUED  # no hub that is to be fetched again
            for each in self._crawl.frontier.busy_host_links(now, _ABOVE_LINKS, _SEEDS)
        )


class PriorityFidelity(Part):
    """Records each fetch during which a clearly better link waited for its host.

    *Priority fidelity* is the share of the other fetches. Start pages, and targets of redirects,
    have no score to be compared with; nor do strategies whose scores are no relevances.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._better: dict[int, str] = {}  # by URL in flight: where the best link waited

    def reset(self) -> None:
        """Count what is in the store."""
        self._crawl.overtaken = len(History(self._crawl.store).events(OVERTAKEN))

    def compare(self, url_id: int) -> None:
        """Compare a URL that is given out with the best of those that wait."""
        crawl = self._crawl
        # others may have been put back, or excluded
        self._better = {url: host for url, host in self._better.items() if url in crawl.in_flight}
        self._better.pop(url_id, None)
        score = crawl.in_flight[url_id]
        if score == math.inf or not crawl.strategy.expects_relevance:
            return
        # the time does not matter here
        for each in crawl.frontier.busy_host_links(0.0, score + SCORE_TOLERANCE, _LOOK):
            if each.score < math.inf:
                self._better[url_id] = crawl.urls.host_name(each.url)
                return

    def before_record(self, visit: PageVisit) -> None:
        """Record the event with the page."""
        host = self._better.pop(visit.url_id, None)
        if host is not None:
            self._crawl.overtaken += 1
            visit.events.append((OVERTAKEN, host))
            visit.better_host = host
