"""When a crawl is over: its budget, no relevant page for long, nothing left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.crawl.part import Part

if TYPE_CHECKING:
    from focuscrawl.crawl.state import CrawlState


class StopRules(Part):
    """Ends a crawl under the name of the rule that applies; keeps the budget exact."""

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl

    def poll(self, now: float) -> bool:
        """Give out nothing while all that is left of the budget is under way."""
        return self._crawl.exhausted

    def stop_reason(self) -> str | None:
        """Return the rule that ends the crawl."""
        crawl, plan = self._crawl, self._crawl.plan
        if plan.budget and crawl.spent >= plan.budget:
            return "budget"
        if plan.stagnation and crawl.fetched - crawl.last_relevant >= plan.stagnation:
            return "no_relevant_page"
        idle = not crawl.in_flight and not any(part.busy for part in crawl.parts)
        if idle and len(crawl.frontier) == crawl.frontier.left:
            if len(crawl.urls) and not crawl.reached:
                return "seeds_unreachable"  # whatever is known is a seed, or where one redirects
            if crawl.failed_in_a_row and not crawl.any_judged:
                return "error"  # the critic or the strategy failed on every page of this run
            return "hosts_unavailable" if len(crawl.frontier) else "frontier_empty"
        return None
