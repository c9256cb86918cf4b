"""What the components of a crawler share: the open crawl, and what works on its pages."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured

from focuscrawl.engine.browser import Rendering
from focuscrawl.engine.open_pages import OpenPages
from focuscrawl.engine.page_parsing import PageParsing
from focuscrawl.engine.page_texts import PageTexts
from focuscrawl.engine.visits import VisitLock
from focuscrawl.signals import page_visited

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from focuscrawl.crawl import Crawl
    from focuscrawl.crawl_config import CrawlConfig

_CONTEXT = "focuscrawl_context"  # attribute of a crawler that has a crawl
_SIGNALS = {name: each for name, each in vars(signals).items() if type(each) is object}
_SIGNALS["page_visited"] = page_visited


class CrawlContext:
    """What the components of one crawler share; most of it is created when first asked for.

    Attributes
    ----------
    crawl : the open crawl
    turns : let one visit at a time be expanded and recorded
    """

    def __init__(self, crawler: Crawler, crawl: Crawl) -> None:
        self._crawler = crawler
        self.crawl = crawl
        self.visit_lock = VisitLock()

    @cached_property
    def parsing(self) -> PageParsing:
        """What parses pages."""
        return PageParsing(self._crawler, self.crawl)

    @cached_property
    def rendering(self) -> Rendering:
        """What runs the scripts of pages; to be created before the engine starts."""
        return Rendering(self._crawler, self.crawl, self.parsing)

    @cached_property
    def texts(self) -> PageTexts:
        """What extracts the main text of pages."""
        return PageTexts(self._crawler, self.crawl)

    @cached_property
    def open_pages(self) -> OpenPages:
        """The pages whose callback, in a spider of another project, is still at work."""
        return OpenPages(self._crawler, self.crawl, self.visit_lock, self.texts)


def bind_crawl(crawler: Crawler, crawl: Crawl) -> None:
    """Let the components of `crawler` find `crawl`."""
    setattr(crawler, _CONTEXT, CrawlContext(crawler, crawl))


def has_crawl(crawler: Crawler) -> bool:
    """Tell whether `crawler` has a crawl."""
    return hasattr(crawler, _CONTEXT)


def context_of(crawler: Crawler) -> CrawlContext:
    """Return what the components of `crawler` share.

    Raises
    ------
    NotConfigured
        It has no crawl: ``scrapy shell`` and ``fetch`` crawl nothing, and need nothing of ours.
    """
    context: CrawlContext | None = getattr(crawler, _CONTEXT, None)
    if context is None:
        raise NotConfigured
    return context


def config_of(crawler: Crawler) -> CrawlConfig:
    """Return the configuration of the crawl of `crawler`, or what its settings say without one."""
    if has_crawl(crawler):
        return context_of(crawler).crawl.config
    from focuscrawl.engine.config_from_settings import config_as_written  # noqa: PLC0415

    return config_as_written(crawler.settings)


class Component:
    """A component of a crawler whose crawl is open.

    Methods that have the name of a signal are called when it is sent. A component that is not
    wanted raises `scrapy.exceptions.NotConfigured` when it is made.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._context = context_of(crawler)
        self._crawl = self._context.crawl

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create the component, and connect it to the signals it has methods for."""
        component = cls(crawler)
        for name, signal in _SIGNALS.items():
            receiver = getattr(component, name, None)
            if receiver is not None:
                crawler.signals.connect(receiver, signal=signal)
        return component
