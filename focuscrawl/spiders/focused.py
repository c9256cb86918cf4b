"""The spider of ``scrapy crawl focused`` and ``focuscrawl crawl``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

import scrapy
from scrapy.utils.misc import load_object

from focuscrawl.crawl import open_crawl
from focuscrawl.engine.browser import configure_browser
from focuscrawl.engine.component import bind_crawl, context_of
from focuscrawl.engine.config_from_settings import read_config
from focuscrawl.engine.instance_feed import instance_sink
from focuscrawl.engine.lean_settings import use_lean_settings
from focuscrawl.engine.page_texts import prepare_texts
from focuscrawl.engine.spider_requests import LinkRequestSettings
from focuscrawl.engine.visits import visit_of_response
from focuscrawl.errors import UserError
from focuscrawl.exporters import check_feeds, skip_empty_feeds
from focuscrawl.extensions.metrics import check_port
from focuscrawl.settings import ITEM_PIPELINES

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from focuscrawl.crawl import Crawl, PageVisit
    from focuscrawl.crawl_config import CrawlConfig

_TEXT_PIPELINE_ORDER = 950  # in ITEM_PIPELINES


class FocusedSpider(scrapy.Spider):
    """Crawls the pages of a topic; ``focuscrawl crawl --help`` lists the spider arguments.

    The spider opens a `focuscrawl.crawl.Crawl` from the spider arguments, and yields one item for
    each fetch.
    """

    name = "focused"
    yields_visits = True  # every fetch is an item, failed ones included
    owns_process = True  # see `focuscrawl.engine.lean_settings`

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Check the arguments and open the crawl, before Scrapy creates its components.

        Raises
        ------
        UserError
            An argument or a setting is invalid.
        """
        given = {name: value for name, value in kwargs.items() if not name.startswith("_")}
        config = cls.read_config(crawler.settings, given)
        spider = super().from_crawler(crawler, *args, **kwargs)
        add_pipelines(crawler.settings, texts=config.text)
        if cls.__module__.startswith("focuscrawl."):
            use_lean_settings(crawler.settings, replays=config.web is not None)
        open_spider_crawl(spider, config, crawler.settings, spider.open_crawl)
        return spider

    @classmethod
    def read_config(cls, settings: BaseSettings, given: Mapping[str, str]) -> CrawlConfig:
        """Return the configuration of the crawl, read from settings and spider arguments."""
        return read_config(settings, given, may_be_demo=True)

    def open_crawl(self, config: CrawlConfig) -> Crawl:
        """Open a new crawl, or resume the crawl in the folder of the configuration."""
        return open_crawl(config)

    async def start(self) -> AsyncIterator[Any]:
        """Yield no requests, because the seeds are already in the frontier."""
        nothing: tuple[Any, ...] = ()
        for request in nothing:
            yield request

    def parse(self, response: Response) -> Iterator[PageVisit]:
        """Yield the fetch as an item; the pipelines judge and record the fetch."""
        yield visit_of_response(context_of(self.crawler).crawl, response)


def add_pipelines(settings: BaseSettings, *, texts: bool) -> None:
    """Add focuscrawl's item pipelines to the settings if they are missing.

    If `texts` is True, also add `TextPipeline`.

    Raises
    ------
    UserError
        One of the pipelines is disabled, or they are in another order.
    """
    ours = {load_object(path): place for path, place in ITEM_PIPELINES.items()}
    for pipeline, place in ours.items():
        settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", pipeline, place)
    named = settings.getdict("ITEM_PIPELINES").items()
    placed = {load_object(path): place for path, place in named if place is not None}
    places = [placed.get(pipeline, -1) for pipeline in ours]
    if -1 in places or places != sorted(set(places)):
        names = ", ".join(pipeline.__name__ for pipeline in ours)
        raise UserError(f"ITEM_PIPELINES: enable {names}, in this order")
    if texts:
        from focuscrawl.pipelines import TextPipeline  # noqa: PLC0415 - an extra import

        settings.setdefault_in_component_priority_dict(
            "ITEM_PIPELINES", TextPipeline, _TEXT_PIPELINE_ORDER
        )


def open_spider_crawl(
    spider: scrapy.Spider,
    config: CrawlConfig,
    settings: BaseSettings,
    opens: Callable[[CrawlConfig], Crawl] = open_crawl,
) -> None:
    """Check all settings, open the crawl of a spider, and attach the crawl to the crawler.

    Parameters
    ----------
    opens : callable
        Opens the crawl of a configuration.

    Raises
    ------
    UserError
        A setting is invalid. No file has been written then.
    """
    check_feeds(settings)
    LinkRequestSettings.of(spider, config)
    check_port(config.metrics_port, config.metrics_address)
    instance_sink(config)
    prepare_texts(config, settings)
    if not getattr(spider, "yields_visits", False):
        config = _config_for_own_spider(config, spider.name)
    if config.browser is not None:
        configure_browser(settings, config.browser)
    crawl = opens(config)
    if crawl.fetched:
        skip_empty_feeds(settings)
    bind_crawl(spider.crawler, crawl)


def _config_for_own_spider(config: CrawlConfig, name: str) -> CrawlConfig:
    """Return the configuration for a project's own spider; refuse options of ``focused``."""
    if config.discover:
        raise UserError(
            "discover works only with the spider focused: leave it out, and read site maps and "
            "feeds in your own spider"
        )
    if config.browser is not None:
        raise UserError(
            "FOCUSCRAWL_BROWSER works only with the spider focused: leave it out, and request a "
            "browser in your spider with the meta of scrapy-playwright"
        )
    return config.with_values(spider=name)
