"""The Scrapy add-on that turns the spider of any project into a focused crawler."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.misc import load_object

from focuscrawl import settings as ours
from focuscrawl.engine.private import is_scrapy_program, is_started_by_command
from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

#: polite defaults of the add-on; settings of the project override them
POLITE_SETTINGS = {
    "ROBOTSTXT_OBEY": True,
    "ROBOTSTXT_PARSER": ours.ROBOTSTXT_PARSER,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    "DOWNLOAD_DELAY": 1.0,
}
#: middlewares for spiders that yield their own items: the first two nearest to the engine, the
#: third nearest to the spider
_SPIDER_COMPONENTS = (
    ("DOWNLOADER_MIDDLEWARES", "focuscrawl.downloadermiddlewares.focus.FocusMiddleware", 40),
    ("SPIDER_MIDDLEWARES", "focuscrawl.spidermiddlewares.AskedMiddleware", 0),
    ("SPIDER_MIDDLEWARES", "focuscrawl.spidermiddlewares.FollowedMiddleware", 10_000),
)
_LIVE_HANDLER = "focuscrawl.downloadhandlers.live.LiveDownloadHandler"


class FocusedCrawling:
    """``ADDONS = {"focuscrawl.addon.FocusedCrawling": 500}``.

    The spider's start requests are the seeds. The critic judges each fetched page, the strategy
    scores the links of the page, and the scheduler fetches the link with the best score next.
    Requests that the spider has yielded keep their callback, meta and headers. All other links
    use ``FOCUSCRAWL_CALLBACK``. The arguments of ``scrapy crawl focused`` are settings:
    ``FOCUSCRAWL_TOPIC``, ``FOCUSCRAWL_CRITIC``, ...

    Raises
    ------
    UserError
        A setting is invalid. No file has been written then.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create the add-on of a crawler that already has its spider."""
        return cls(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the components of focuscrawl, and open the crawl.

        ``scrapy crawl`` prints a `UserError` as one line and exits with code 2. A program that
        runs crawlers itself gets the exception.
        """
        try:
            self._update(settings)
        except UserError as error:
            command = "focuscrawl.commands" in str(settings.get("COMMANDS_MODULE"))
            if command or not is_scrapy_program():
                raise
            print(f"scrapy: {error}", file=sys.stderr)  # noqa: T201
            sys.exit(2)

    def _update(self, settings: BaseSettings) -> None:
        spider = self._crawler.spider
        if spider is None or is_started_by_command(spider):
            return  # `scrapy shell`, `fetch`, `parse`, ... do not crawl
        _take_over_scheduling(settings)
        for name, value in POLITE_SETTINGS.items():
            settings.set(name, value, priority="addon")
        if not settings.getdict("DOWNLOAD_HANDLERS").keys() & {"http", "https"}:
            handlers = {
                **settings.getdict("DOWNLOAD_HANDLERS"),
                "http": _LIVE_HANDLER,
                "https": _LIVE_HANDLER,
            }
            priority = settings.getpriority("DOWNLOAD_HANDLERS") or 0
            settings.set("DOWNLOAD_HANDLERS", handlers, priority=priority)
        for name in ("DOWNLOADER_MIDDLEWARES", "EXTENSIONS"):
            for path, place in getattr(ours, name).items():
                # None: a component of Scrapy that a component of focuscrawl replaces
                if path.startswith("focuscrawl.") or name == "DOWNLOADER_MIDDLEWARES":
                    component = load_object(path)
                    settings.setdefault_in_component_priority_dict(name, component, place)
        for name, path, place in _SPIDER_COMPONENTS:
            settings.setdefault_in_component_priority_dict(name, load_object(path), place)
        from focuscrawl.engine.component import has_crawl  # noqa: PLC0415 - slow to import

        if not has_crawl(self._crawler):  # the spider `focused` has opened its own
            from focuscrawl.engine.config_from_settings import read_config  # noqa: PLC0415
            from focuscrawl.spiders.focused import open_spider_crawl  # noqa: PLC0415 - slow to import

            config = read_config(settings)
            # seeds="": the spider's start requests are the seeds
            open_spider_crawl(spider, config.with_values(seeds=config.seeds or ""), settings)


def _take_over_scheduling(settings: BaseSettings) -> None:
    from focuscrawl.scheduler import FrontierScheduler  # noqa: PLC0415 - slow to import

    theirs = (settings.getpriority("SCHEDULER") or 0) > SETTINGS_PRIORITIES["addon"]
    if theirs and load_object(settings["SCHEDULER"]) is not FrontierScheduler:
        raise UserError(
            f"SCHEDULER is {settings['SCHEDULER']}, but a focused crawl needs its own scheduler: "
            "remove the setting"
        )
    settings.set("SCHEDULER", FrontierScheduler, priority="addon")
