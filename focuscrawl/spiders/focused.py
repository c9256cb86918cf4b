"""``scrapy crawl focused``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from focuscrawl.crawl import Crawl, PageVisit
    from focuscrawl.crawl_config import CrawlConfig

_AFTER_RECORD = 950  # place of the pipeline of texts


class FocusedSpider(scrapy.Spider):
    """Crawls the pages of a topic; arguments as in the README.

    The loop itself is `focuscrawl.crawl.Crawl`; this spider opens it from its arguments and
    yields one item a fetch.
    """

    name = "focused"
    yields_visits = True  # every fetch is an item, whatever came of it
    owns_process = True  # which is set up for the crawl: see `focuscrawl.engine.lean_settings`

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Check the arguments and open the crawl, before Scrapy builds anything.

        Raises
        ------
        UserError
            Anything the user has to put right.
        """
        given = {name: value for name, value in kwargs.items() if not name.startswith("_")}
        config = cls.read_config(crawler.settings, given)
        spider = super().from_crawler(crawler, *args, **kwargs)
        place_pipelines(crawler.settings, texts=config.text)
        if cls.__module__.startswith("focuscrawl."):
            use_lean_settings(crawler.settings, replays=config.web is not None)
        open_for(spider, config, crawler.settings, spider.open_crawl)
        return spider

    @classmethod
    def read_config(cls, settings: BaseSettings, given: Mapping[str, str]) -> CrawlConfig:
        """Return the configuration of the crawl."""
        return read_config(settings, given, may_be_demo=True)

    def open_crawl(self, config: CrawlConfig) -> Crawl:
        """Open the crawl of a folder."""
        return open_crawl(config)

    async def start(self) -> AsyncIterator[Any]:
        """Yield nothing: the seeds are in the frontier."""
        nothing: tuple[Any, ...] = ()
        for request in nothing:
            yield request

    def parse(self, response: Response) -> Iterator[PageVisit]:
        """Yield the fetch: the item pipelines judge it, score its links and record it."""
        yield visit_of_response(context_of(self.crawler).crawl, response)


def place_pipelines(settings: BaseSettings, *, texts: bool) -> None:
    """Add the three pipelines of a crawl where they lack, and that of texts if it is wanted.

    Raises
    ------
    UserError
        One of them is switched off, or they are in another order.
    """
    ours = {load_object(path): place for path, place in ITEM_PIPELINES.items()}
    for pipeline, place in ours.items():
        settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", pipeline, place)
    named = settings.getdict("ITEM_PIPELINES").items()
    placed = {load_object(path): place for path, place in named if place is not None}
    places = [placed.get(pipeline, -1) for pipeline in ours]
    if -1 in places or places != sorted(set(places)):
        names = ", ".join(pipeline.__name__ for pipeline in ours)
        raise UserError(f"ITEM_PIPELINES: a crawl needs {names}, in this order")
    if texts:
        from focuscrawl.pipelines import TextPipeline  # noqa: PLC0415 - few want it

        settings.setdefault_in_component_priority_dict(
            "ITEM_PIPELINES", TextPipeline, _AFTER_RECORD
        )


def open_for(
    spider: scrapy.Spider,
    config: CrawlConfig,
    settings: BaseSettings,
    opens: Callable[[CrawlConfig], Crawl] = open_crawl,
) -> None:
    """Open the crawl of a spider: check everything first, and bind it to the spider's crawler.

    Parameters
    ----------
    opens : what opens the crawl

    Raises
    ------
    UserError
        Anything the user has to put right; nothing has been written then.
    """
    check_feeds(settings)
    LinkRequestSettings.of(spider, config)
    check_port(config.metrics_port, config.metrics_address)
    instance_sink(config.instances)
    prepare_texts(config, settings)
    if not getattr(spider, "yields_visits", False):
        config = _for_own_spider(config, spider.name)
    if config.browser is not None:
        configure_browser(settings, config.browser)
    crawl = opens(config)
    if crawl.fetched:
        skip_empty_feeds(settings)
    bind_crawl(spider.crawler, crawl)


def _for_own_spider(config: CrawlConfig, name: str) -> CrawlConfig:
    """Return the configuration for a project's own spider; refuse what is for ``focused``."""
    if config.discover:
        raise UserError(
            "discover is for the spider focused: yours reads site maps and feeds itself"
        )
    if config.browser is not None:
        raise UserError(
            "FOCUSCRAWL_BROWSER is for the spider focused: requests of yours ask for a browser "
            "with the meta of scrapy-playwright"
        )
    return config.with_values(spider=name)
