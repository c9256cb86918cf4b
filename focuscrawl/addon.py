"""Scrapy add-on that turns the spider of any project into a focused crawler."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.misc import load_object

from focuscrawl import settings as own_settings
from focuscrawl.engine.private import is_scrapy_program, is_started_by_command
from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

#: defaults for politeness, because the crawl follows links to any host; projects may change them
POLITE_SETTINGS = {
    "ROBOTSTXT_OBEY": True,
    "ROBOTSTXT_PARSER": own_settings.ROBOTSTXT_PARSER,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    "DOWNLOAD_DELAY": 1.0,
}
#: middlewares between the crawl and a spider that yields items of its own: the first two are the
#: nearest to the engine, the third is the nearest to the spider
_SPIDER_COMPONENTS = (
    ("DOWNLOADER_MIDDLEWARES", "focuscrawl.downloadermiddlewares.focus.FocusMiddleware", 40),
    ("SPIDER_MIDDLEWARES", "focuscrawl.spidermiddlewares.AskedMiddleware", 0),
    ("SPIDER_MIDDLEWARES", "focuscrawl.spidermiddlewares.FollowedMiddleware", 10_000),
)
_LIVE_HANDLER = "focuscrawl.downloadhandlers.live.LiveDownloadHandler"


class FocusedCrawling:
    """Scrapy add-on that makes the crawl of a spider a focused crawl.

    The setting ``ADDONS = {"focuscrawl.addon.FocusedCrawling": 500}`` enables the add-on. The
    spider's start requests are the start pages of the crawl. The crawl judges every page,
    scores its links, and fetches the link with the best score next. Requests of the spider keep
    their callback, headers and meta. Pages that the spider did not request are passed to
    ``FOCUSCRAWL_CALLBACK``. With the add-on, settings such as ``FOCUSCRAWL_TOPIC`` and
    ``FOCUSCRAWL_CRITIC`` replace the arguments of ``scrapy crawl focused``.

    Raises
    ------
    UserError
        An error in the settings; the add-on has not written any file.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create the add-on for a Scrapy crawler."""
        return cls(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the components of focuscrawl to the Scrapy settings, and open the crawl.

        If opening the crawl raises a `UserError`, ``scrapy crawl`` prints one line and exits with
        code 2. In a program that runs Scrapy crawlers itself, a `UserError` propagates to the
        program.
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
            return  # commands such as `scrapy shell` and `scrapy fetch` do not crawl
        _set_scheduler(settings)
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
            for path, priority in getattr(own_settings, name).items():
                # the priority None disables a component of Scrapy that focuscrawl replaces
                if path.startswith("focuscrawl.") or name == "DOWNLOADER_MIDDLEWARES":
                    component = load_object(path)
                    settings.setdefault_in_component_priority_dict(name, component, priority)
        for name, path, priority in _SPIDER_COMPONENTS:
            settings.setdefault_in_component_priority_dict(name, load_object(path), priority)
        from focuscrawl.engine.component import has_crawl  # noqa: PLC0415 - slow to import

        if not has_crawl(self._crawler):  # the spider `focused` opens its crawl itself
            from focuscrawl.engine.config_from_settings import read_config  # noqa: PLC0415
            from focuscrawl.spiders.focused import open_spider_crawl  # noqa: PLC0415 - slow to import

            config = read_config(settings)
            # no seeds from the critic: the spider's start requests are the seeds
            open_spider_crawl(spider, config.with_values(seeds=config.seeds or ""), settings)


def _set_scheduler(settings: BaseSettings) -> None:
    from focuscrawl.scheduler import FrontierScheduler  # noqa: PLC0415 - slow to import

    is_set_by_project = (settings.getpriority("SCHEDULER") or 0) > SETTINGS_PRIORITIES["addon"]
    if is_set_by_project and load_object(settings["SCHEDULER"]) is not FrontierScheduler:
        raise UserError(
            f"SCHEDULER is {settings['SCHEDULER']}, but a focused crawl needs its own scheduler: "
            "remove the setting SCHEDULER"
        )
    settings.set("SCHEDULER", FrontierScheduler, priority="addon")
