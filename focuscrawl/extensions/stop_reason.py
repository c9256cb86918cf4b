"""Closes the spider with the crawl's own stop reason: budget, frontier_empty, error, ..."""

from __future__ import annotations

import logging

from scrapy.exceptions import CloseSpider

from focuscrawl.engine.component import Component
from focuscrawl.engine.private import close_spider, start_failed

logger = logging.getLogger(__name__)


class StopReason(Component):
    """Closes the idle spider with the crawl's stop reason instead of ``finished``.

    Others may keep an idle spider open for requests to come, but not one whose budget is spent.
    """

    def spider_idle(self) -> None:
        """Close the spider."""
        failure = self._crawl.store_failure
        if failure is not None:
            said = getattr(failure, "orig", failure)  # without statement and parameters
            logger.error("the crawl store cannot be used any more: %s", said)
        reason = self._crawl.stop_reason
        if reason not in (None, "frontier_empty", "seeds_unreachable"):
            close_spider(self._crawler, reason)
        if start_failed(self._crawler):
            reason = "start_error"
        raise CloseSpider(reason or "finished")
