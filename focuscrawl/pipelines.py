"""Scrapy item pipelines, in the order of ITEM_PIPELINES: judge, score, record, extract text.

The items are `focuscrawl.crawl.visit.PageVisit`, one a fetch. A pipeline of your own between two
of these sees what those before it have set; what it changes counts for those after it.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import DropItem

from focuscrawl.crawl import PageVisit
from focuscrawl.engine.component import Component
from focuscrawl.engine.instance_feed import InstanceFeed
from focuscrawl.engine.page_parsing import expand_visit
from focuscrawl.engine.page_texts import TextVisit
from focuscrawl.engine.private import wake
from focuscrawl.engine.visits import URL_ID, count_refetch, halt_on_error
from focuscrawl.errors import RequestCancelledError
from focuscrawl.signals import page_visited

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


logger = logging.getLogger(__name__)


class CriticPipeline(Component):
    """Parses the answer and sets `relevance`, `topic`, `probabilities` and `view` of the item.

    Redirects, errors, duplicates and what is no HTML have relevance 0. Pipelines after this one
    may set another relevance: links, limits and lessons go by that.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._parsing = self._context.parsing
        self._rendering = self._context.rendering

    async def process_item(self, item: Any) -> Any:
        """Judge a fetch; items of other kinds pass."""
        if isinstance(item, PageVisit) and item.excluded is None:
            try:
                await self._parsing.parse(item)
                await self._rendering.render(item)
            except RequestCancelledError as error:
                raise DropItem(str(error), log_level="DEBUG") from None
            with halt_on_error(self._crawl, item.url_id):
                self._crawl.judge(item)
        return item


class LinkPipeline(Component):
    """Scores the links of the page, queues where they lead, and emits (u,v) instances.

    The page is v for the links to it: with R(v) known, each of them is an instance to learn from.
    The strategy gets them, as does the feed or callable of `FOCUSCRAWL_INSTANCES`. One page at a
    time is between here and `RecordPipeline`: the strategy sees pages in the order in which they
    are recorded.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._visit_lock = self._context.visit_lock
        self._instances = InstanceFeed.of(crawler, self._crawl)

    async def process_item(self, item: Any) -> Any:
        """Expand a fetch; items of other kinds pass."""
        if isinstance(item, PageVisit) and item.excluded is None:
            await self._visit_lock.acquire(item)
            try:
                with halt_on_error(self._crawl, item.url_id):
                    await expand_visit(self._crawl, item)
                    if self._instances is not None:
                        self._instances.add(item)
            except Exception:
                self._visit_lock.release(item)
                raise
        return item


class TextPipeline(Component):
    """Makes every fetch a `TextVisit`; on with ``FOCUSCRAWL_TEXT``, after `RecordPipeline`."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._texts = self._context.texts
        self._markdown = self._crawl.config.text_markdown

    async def process_item(self, item: Any) -> Any:
        """Extract the text of a fetch; items of other kinds pass."""
        if not isinstance(item, PageVisit):
            return item
        found = await self._texts.extract(item) if self._texts.needs_text(item) else None
        return TextVisit.of(item, found, markdown=self._markdown)


class RecordPipeline(Component):
    """Records every fetch, once, and drops those that are no items: feeds come after it.

    A fetch whose item another pipeline drops, or fails on, is recorded all the same, as far as it
    was processed. What was excluded (robots.txt) is no fetch, and no item.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._visit_lock = self._context.visit_lock
        crawler.signals.connect(self.given_up, signal=signals.item_dropped)
        crawler.signals.connect(self.given_up, signal=signals.item_error)
        if _has_others(crawler.settings, 4 if self._crawl.config.text else 3):
            crawler.signals.connect(self.swallowed, signal=signals.item_scraped)

    def process_item(self, item: Any) -> Any:
        """Record a fetch; items of other kinds pass."""
        if not isinstance(item, PageVisit):
            return item
        if item.url_id in self._crawl.in_flight:
            self._record(item)
        if item.excluded is not None:
            self._crawler.stats.inc_value("focuscrawl/excluded")
            raise DropItem(f"excluded: {item.excluded}")
        if item.is_refetch:
            count_refetch(self._crawler.stats, item)
            raise DropItem("fetched again for its new links: nobody else asked for it")
        if item.noindex:
            self._crawler.stats.inc_value("focuscrawl/noindex")
            raise DropItem("the page asks not to be listed anywhere")
        return item

    async def given_up(self, item: Any) -> None:
        """Record a fetch that another pipeline has dropped, or failed on."""
        if isinstance(item, PageVisit) and item.url_id in self._crawl.in_flight:
            await self._visit_lock.acquire(item)
            self._record(item)

    def swallowed(self, item: Any, response: Any) -> None:
        """Record the fetch whose turn it is, if a pipeline has returned something else for it."""
        visit = self._visit_lock.holder
        if visit is None or isinstance(item, PageVisit) or response is None:
            return
        if response.request.meta.get(URL_ID) == visit.url_id:
            logger.error("a pipeline returned no fetch for %s, but %r", visit.url, item)
            self._record(visit)

    def _record(self, visit: PageVisit) -> None:
        try:
            with halt_on_error(self._crawl, visit.url_id):
                self._crawl.record(visit, time.monotonic())
        finally:
            self._visit_lock.release(visit)
        wake(self._crawler)  # the next request need not wait until Scrapy is done with the item
        if visit.excluded is None and not visit.is_refetch:
            send = self._crawler.signals.send_catch_log
            send(page_visited, crawl=self._crawl, visit=visit)


def _has_others(settings: BaseSettings, ours: int) -> bool:
    # pipelines of the user besides the project's own
    places = settings.getdict("ITEM_PIPELINES").values()
    return len([place for place in places if place is not None]) > ours
