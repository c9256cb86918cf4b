"""Closes the spider with the crawl's own stop reason: budget, frontier_empty, error, ..."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import CloseSpider

from focuscrawl.engine.binding import crawl_of
from focuscrawl.engine.private import close_spider

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class StopReason:
    """Closes the idle spider with the crawl's stop reason instead of ``finished``.

    Others may keep an idle spider open for requests to come, but not one whose budget is spent.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl = crawl_of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the extension of a crawler whose crawl is open."""
        extension = cls(crawler)
        crawler.signals.connect(extension.spider_idle, signal=signals.spider_idle)
        return extension

    def spider_idle(self) -> None:
        """Close the spider."""
        failure = self._crawl.store_failure
        if failure is not None:
            said = getattr(failure, "orig", failure)  # without statement and parameters
            logger.error("the crawl store cannot be used any more: %s", said)
        reason = self._crawl.stop_reason
        if reason not in (None, "frontier_empty"):
            close_spider(self._crawler, reason)
        raise CloseSpider(reason or "finished")
