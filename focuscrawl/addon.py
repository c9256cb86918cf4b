"""An add-on that makes the spider of any Scrapy project a focused one."""

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

#: what a crawl that goes where links lead owes to the hosts it visits; a project may say otherwise
DECENT = {
    "ROBOTSTXT_OBEY": True,
    "ROBOTSTXT_PARSER": ours.ROBOTSTXT_PARSER,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    "DOWNLOAD_DELAY": 1.0,
}
#: what stands between the crawl and a spider that yields items of its own: two nearest to the
#: engine, one nearest to the spider
_FOR_SPIDERS = (
    ("DOWNLOADER_MIDDLEWARES", "focuscrawl.downloadermiddlewares.focus.FocusMiddleware", 40),
    ("SPIDER_MIDDLEWARES", "focuscrawl.spidermiddlewares.AskedMiddleware", 0),
    ("SPIDER_MIDDLEWARES", "focuscrawl.spidermiddlewares.FollowedMiddleware", 10_000),
)
_LIVE = "focuscrawl.downloadhandlers.LiveDownloadHandler"


class FocusedCrawling:
    """``ADDONS = {"focuscrawl.addon.FocusedCrawling": 500}``.

    The spider's start requests are the seeds. Every page that comes is judged, its links are
    scored, and the link with the best score is fetched next, whether the spider has asked for
    it (its callback, meta and headers are kept) or not (``FOCUSCRAWL_CALLBACK``). The arguments
    of ``scrapy crawl focused`` are settings: ``FOCUSCRAWL_TOPIC``, ``FOCUSCRAWL_CRITIC``, ...

    Raises
    ------
    UserError
        Anything the user has to put right; nothing has been written then.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the add-on of a crawler that has its spider."""
        return cls(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        """Put the components in, and open the crawl that they work on.

        Under ``scrapy crawl`` an error of the user's is one line and exit code 2, as everywhere;
        a program that runs crawlers itself gets the exception.
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
            return  # `scrapy shell`, `fetch`, `parse`, ...: nothing is crawled
        _take_over_scheduling(settings)
        for name, value in DECENT.items():
            settings.set(name, value, priority="addon")
        if not settings.getdict("DOWNLOAD_HANDLERS").keys() & {"http", "https"}:
            handlers = {**settings.getdict("DOWNLOAD_HANDLERS"), "http": _LIVE, "https": _LIVE}
            priority = settings.getpriority("DOWNLOAD_HANDLERS") or 0
            settings.set("DOWNLOAD_HANDLERS", handlers, priority=priority)
        for name in ("DOWNLOADER_MIDDLEWARES", "EXTENSIONS"):
            for path, place in getattr(ours, name).items():
                # None: what a component of ours stands in for
                if path.startswith("focuscrawl.") or name == "DOWNLOADER_MIDDLEWARES":
                    component = load_object(path)
                    settings.setdefault_in_component_priority_dict(name, component, place)
        for name, path, place in _FOR_SPIDERS:
            settings.setdefault_in_component_priority_dict(name, load_object(path), place)
        from focuscrawl.engine.component import has_crawl  # noqa: PLC0415 - slow to import

        if not has_crawl(self._crawler):  # the spider `focused` has opened its own
            from focuscrawl.engine.config_from_settings import read_config  # noqa: PLC0415
            from focuscrawl.spiders.focused import open_for  # noqa: PLC0415 - slow to import

            config = read_config(settings)
            # without seeds of its own: those are the spider's start requests
            open_for(spider, config.with_values(seeds=config.seeds or ""), settings)


def _take_over_scheduling(settings: BaseSettings) -> None:
    from focuscrawl.scheduler import FrontierScheduler  # noqa: PLC0415 - slow to import

    theirs = (settings.getpriority("SCHEDULER") or 0) > SETTINGS_PRIORITIES["addon"]
    if theirs and load_object(settings["SCHEDULER"]) is not FrontierScheduler:
        raise UserError(
            f"SCHEDULER is {settings['SCHEDULER']}: a focused crawl orders its requests itself, "
            "leave the setting out"
        )
    settings.set("SCHEDULER", FrontierScheduler, priority="addon")
