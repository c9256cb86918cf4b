"""Scrapy item pipelines that judge and record every fetch, score links, and extract text.

The items are `focuscrawl.crawl.visit.PageVisit`, one for each fetch. A user's pipeline between two
pipelines of focuscrawl sees the fields set by earlier pipelines, and can change the fields for
later pipelines.
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
    """Parse the response and set the item's `relevance`, `topic`, `probabilities` and `view`.

    Redirects, errors, duplicates and documents other than HTML have relevance 0. A later pipeline
    may change the relevance. Link scores, limits and training then use the changed relevance.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._parsing = self._context.parsing
        self._rendering = self._context.rendering

    async def process_item(self, item: Any) -> Any:
        """Judge the page of a `PageVisit`; return other items unchanged."""
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
    """Score and queue the links of a page; create a training instance for each fetched page v.

    The features of the training instance come from the links (u, v) on earlier pages u, and its
    label is the relevance of v. The strategy is trained on the instances. The file or callable of
    the setting ``FOCUSCRAWL_INSTANCES`` receives the same instances. Only one page at a time is
    between `LinkPipeline` and `RecordPipeline`, so the strategy sees pages in the order in which
    pages are recorded.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._visit_lock = self._context.visit_lock
        InstanceFeed.connect(crawler, self._crawl)

    async def process_item(self, item: Any) -> Any:
        """Score the links of a `PageVisit`; return other items unchanged."""
        if isinstance(item, PageVisit) and item.excluded is None:
            await self._visit_lock.acquire(item)
            try:
                with halt_on_error(self._crawl, item.url_id):
                    await expand_visit(self._crawl, item)
            except Exception:
                self._visit_lock.release(item)
                raise
        return item


class TextPipeline(Component):
    """Convert each fetch to an item with the page's main text (setting ``FOCUSCRAWL_TEXT``)."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._texts = self._context.texts
        self._markdown = self._crawl.config.text_markdown

    async def process_item(self, item: Any) -> Any:
        """Extract the main text of a `PageVisit`; return other items unchanged."""
        if not isinstance(item, PageVisit):
            return item
        found = await self._texts.extract(item) if self._texts.needs_text(item) else None
        return TextVisit.of(item, found, markdown=self._markdown)


class RecordPipeline(Component):
    """Record every fetch once, and drop the items that do not belong in feed exports.

    If another pipeline drops the item or raises an error, the fetch is recorded with the fields
    set so far. URLs excluded by robots.txt are neither fetches nor items.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._visit_lock = self._context.visit_lock
        crawler.signals.connect(self.record_dropped, signal=signals.item_dropped)
        crawler.signals.connect(self.record_dropped, signal=signals.item_error)
        if _has_other_pipelines(crawler.settings, 4 if self._crawl.config.text else 3):
            crawler.signals.connect(self.record_replaced, signal=signals.item_scraped)

    def process_item(self, item: Any) -> Any:
        """Record a `PageVisit` in the store; return other items unchanged."""
        if not isinstance(item, PageVisit):
            return item
        if item.url_id in self._crawl.in_flight:
            self._record(item)
        if item.excluded is not None:
            self._crawler.stats.inc_value("focuscrawl/excluded")
            raise DropItem(f"excluded: {item.excluded}")
        if item.is_refetch:
            count_refetch(self._crawler.stats, item)
            raise DropItem("fetched again only for its new links")
        if item.noindex:
            self._crawler.stats.inc_value("focuscrawl/noindex")
            raise DropItem("the page forbids indexing (noindex)")
        return item

    async def record_dropped(self, item: Any) -> None:
        """Record a fetch whose item another pipeline has dropped or failed to process."""
        if isinstance(item, PageVisit) and item.url_id in self._crawl.in_flight:
            await self._visit_lock.acquire(item)
            self._record(item)

    def record_replaced(self, item: Any, response: Any) -> None:
        """Record the current fetch if another pipeline has replaced the item of the fetch."""
        visit = self._visit_lock.holder
        if visit is None or isinstance(item, PageVisit) or response is None:
            return
        if response.request.meta.get(URL_ID) == visit.url_id:
            logger.error(
                "an item pipeline returned %r instead of the fetch of %s: return the item itself",
                item,
                visit.url,
            )
            self._record(visit)

    def _record(self, visit: PageVisit) -> None:
        try:
            with halt_on_error(self._crawl, visit.url_id):
                self._crawl.record(visit, time.monotonic())
        finally:
            self._visit_lock.release(visit)
        wake(self._crawler)  # Scrapy may request the next page before it finishes the item
        if visit.excluded is None and not visit.is_refetch:
            send = self._crawler.signals.send_catch_log
            send(page_visited, crawl=self._crawl, visit=visit)


def _has_other_pipelines(settings: BaseSettings, n_own: int) -> bool:
    priorities = settings.getdict("ITEM_PIPELINES").values()
    return sum(priority is not None for priority in priorities) > n_own
