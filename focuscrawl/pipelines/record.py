"""The store: a page, its links and its new state in one transaction; then a lesson, if due."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import DropItem

from focuscrawl.crawl import PageVisit
from focuscrawl.engine.component import Component
from focuscrawl.engine.meta import URL_ID
from focuscrawl.engine.private import wake
from focuscrawl.engine.settings_table import TEXTS
from focuscrawl.engine.visits import count_again, halting, turns_of
from focuscrawl.signals import page_visited

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)


class RecordPipeline(Component):
    """Records every fetch, once, and passes on those that users count: feeds come after it.

    A fetch whose item another pipeline drops, or fails on, is recorded all the same, as far as
    it has come: it was made. What was excluded (robots.txt) is no fetch, and no item.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._turns = turns_of(crawler)
        crawler.signals.connect(self.given_up, signal=signals.item_dropped)
        crawler.signals.connect(self.given_up, signal=signals.item_error)
        if _has_others(crawler.settings):
            crawler.signals.connect(self.swallowed, signal=signals.item_scraped)

    def process_item(self, item: Any) -> Any:
        """Record a fetch; items of other kinds pass."""
        if not isinstance(item, PageVisit):
            return item
        if item.number in self._crawl.in_flight:
            self._record(item)
        if item.excluded is not None:
            self._crawler.stats.inc_value("focuscrawl/excluded")
            raise DropItem(f"excluded: {item.excluded}")
        if item.again:
            count_again(self._crawler.stats, item)
            raise DropItem("fetched again for its new links: nobody else asked for it")
        if item.noindex:
            self._crawler.stats.inc_value("focuscrawl/noindex")
            raise DropItem("the page asks not to be listed anywhere")
        return item

    async def given_up(self, item: Any) -> None:
        """Record a fetch that another pipeline has dropped, or failed on."""
        if isinstance(item, PageVisit) and item.number in self._crawl.in_flight:
            await self._turns.begin(item)
            self._record(item)

    def swallowed(self, item: Any, response: Any) -> None:
        """Record the fetch whose turn it is, if a pipeline has returned something else for it."""
        visit = self._turns.holder
        if visit is None or isinstance(item, PageVisit) or response is None:
            return
        if response.request.meta.get(URL_ID) == visit.number:
            logger.error("a pipeline returned no fetch for %s, but %r", visit.url, item)
            self._record(visit)

    def _record(self, visit: PageVisit) -> None:
        try:
            with halting(self._crawl, visit.number):
                self._crawl.record(visit, time.monotonic())
        finally:
            self._turns.end(visit)
        wake(self._crawler)  # the next request need not wait until Scrapy is through with the item
        if visit.excluded is None and not visit.again:
            send = self._crawler.signals.send_catch_log
            send(page_visited, crawl=self._crawl, visit=visit)


def _has_others(settings: BaseSettings) -> bool:
    """Tell whether pipelines of a user's are there, besides the project's own."""
    places = settings.getdict("ITEM_PIPELINES").values()
    ours = 4 if TEXTS.of(settings) else 3
    return len([place for place in places if place is not None]) > ours
