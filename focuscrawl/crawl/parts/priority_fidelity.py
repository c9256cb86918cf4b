"""How often a fetch was not of one of the best links known, as those waited for their hosts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from focuscrawl.crawl.part import Part
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit

#: kind of the event that better links waited while a page was fetched; detail: the best's host
OVERTAKEN = "overtaken"

NEARLY = 0.05  # below the best score known: as good as the best
_LOOK = 8  # hosts without room that may have nothing but redirects first


class PriorityFidelity(Part):
    """Notes each fetch during which a link waited that was better by more than `NEARLY`.

    *Priority fidelity* is the share of fetches of which that is not so. Start pages, and what
    redirects lead to, have no score to be compared with; nor do strategies whose scores are no
    relevances.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._better: dict[int, str] = {}  # by URL under way: where the best link waited

    def reset(self) -> None:
        """Count what is in the store."""
        self._crawl.overtaken = len(History(self._crawl.store).events(OVERTAKEN))

    def began(self, number: int) -> None:
        """Compare a URL that was given out with the best of those that wait."""
        crawl = self._crawl
        score = crawl.in_flight[number]
        if score == math.inf or not crawl.strategy.expects_relevance:
            return
        # the time does not matter here
        for each in crawl.frontier.awaited(0.0, score + NEARLY, _LOOK):
            if each.score < math.inf:
                self._better[number] = crawl.urls.host_name(each.url)
                return

    def did_not_fetch(self, number: int) -> None:
        """Forget it: it waits again, or never."""
        self._better.pop(number, None)

    def on_page(self, visit: PageVisit) -> None:
        """Write it down with the page."""
        host = self._better.pop(visit.number, None)
        if host is not None:
            self._crawl.overtaken += 1
            visit.events.append((OVERTAKEN, host))
            visit.overtakes = host
