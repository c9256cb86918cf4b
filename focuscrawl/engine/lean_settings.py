"""What of Scrapy a crawl can do without whose spider has no requests of its own."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.logformatter import LogFormatter

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from scrapy.settings import BaseSettings

_KEPT = {"scrapy.spidermiddlewares.referer.RefererMiddleware": 700}
_DETAILED = ("DEBUG", "NOTSET", logging.DEBUG, logging.NOTSET)


def spare(settings: BaseSettings) -> None:
    """Leave out what looks at a spider's requests, and log lines that nobody reads.

    Each of Scrapy's own spider middlewares would pass every visit on through generators of its
    own; a line of the log is made whether it is shown or not. What users have set stays. The one
    for referrers stays as well: Scrapy's redirects ask it what to say.
    """
    settings.set("SPIDER_MIDDLEWARES_BASE", _KEPT, priority="spider")
    if settings.get("LOG_LEVEL") not in _DETAILED and not settings.getpriority("LOG_FORMATTER"):
        settings.set("LOG_FORMATTER", QuietFormatter, priority="spider")


class QuietFormatter(LogFormatter):
    """Makes no line for a page or an item: where there is None, Scrapy logs nothing."""

    def crawled(self, request: Request, response: Response, spider: Spider) -> LogFormatterResult:
        """Say nothing of a page."""
        return None  # type: ignore[return-value]

    def scraped(self, item: object, response: object, spider: Spider) -> LogFormatterResult:
        """Say nothing of an item."""
        return None  # type: ignore[return-value]

    def dropped(
        self, item: object, exception: BaseException, response: object, spider: Spider
    ) -> LogFormatterResult:
        """Say nothing of what is no item; of what a user's pipeline drops, what Scrapy says."""
        if getattr(item, "excluded", None) is not None or getattr(item, "again", False):
            return None  # type: ignore[return-value]
        return super().dropped(item, exception, response, spider)  # type: ignore[arg-type]
