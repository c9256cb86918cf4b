"""Base class of focuscrawl's Scrapy components, and the objects of a crawl that they share."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

from scrapy import signals
from scrapy.exceptions import NotConfigured

from focuscrawl.engine.browser import Rendering
from focuscrawl.engine.open_pages import OpenPages
from focuscrawl.engine.page_parsing import PageParsing
from focuscrawl.engine.page_texts import PageTexts
from focuscrawl.engine.visits import VisitLock
from focuscrawl.signals import page_visited

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from focuscrawl.crawl import Crawl
    from focuscrawl.crawl_config import CrawlConfig

_CONTEXT = "focuscrawl_context"  # attribute of a crawler that has a crawl
_SIGNALS = {name: each for name, each in vars(signals).items() if type(each) is object}
_SIGNALS["page_visited"] = page_visited


class CrawlContext:
    """Objects that the components of one Scrapy crawler share, each created at its first use."""

    def __init__(self, crawler: Crawler, crawl: Crawl) -> None:
        self._crawler = crawler
        self.crawl = crawl
        self.visit_lock = VisitLock()

    @cached_property
    def parsing(self) -> PageParsing:
        """Parser of pages."""
        return PageParsing(self._crawler, self.crawl)

    @cached_property
    def rendering(self) -> Rendering:
        """Renderer of pages with scripts; must be created before the Scrapy engine starts."""
        return Rendering(self._crawler, self.crawl, self.parsing)

    @cached_property
    def texts(self) -> PageTexts:
        """Extractor of the main text of pages."""
        return PageTexts(self._crawler, self.crawl)

    @cached_property
    def open_pages(self) -> OpenPages:
        """Pages for which the callback of a project's own spider has not finished."""
        return OpenPages(self._crawler, self.crawl, self.visit_lock, self.texts)


def bind_crawl(crawler: Crawler, crawl: Crawl) -> None:
    """Make an open crawl available to the components of a Scrapy crawler."""
    setattr(crawler, _CONTEXT, CrawlContext(crawler, crawl))


def has_crawl(crawler: Crawler) -> bool:
    """Tell whether a Scrapy crawler has an open focuscrawl crawl."""
    return hasattr(crawler, _CONTEXT)


def context_of(crawler: Crawler) -> CrawlContext:
    """Return the objects that the components of a Scrapy crawler share.

    Raises
    ------
    NotConfigured
        The crawler has no crawl, as in ``scrapy shell`` and ``scrapy fetch``.
    """
    context: CrawlContext | None = getattr(crawler, _CONTEXT, None)
    if context is None:
        raise NotConfigured
    return context


def config_of(crawler: Crawler) -> CrawlConfig:
    """Return the configuration of a Scrapy crawler's crawl; if it has none, read the settings."""
    if has_crawl(crawler):
        return context_of(crawler).crawl.config
    from focuscrawl.engine.config_from_settings import config_as_written  # noqa: PLC0415

    return config_as_written(crawler.settings)


class Component:
    """Base class of the Scrapy components that need an open crawl.

    Methods with the name of a Scrapy signal are connected to the signal. The constructor of a
    disabled component raises `scrapy.exceptions.NotConfigured`.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._context = context_of(crawler)
        self._crawl = self._context.crawl

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create the component, and connect its methods to the signals of the same names."""
        component = cls(crawler)
        for name, signal in _SIGNALS.items():
            receiver = getattr(component, name, None)
            if receiver is not None:
                crawler.signals.connect(receiver, signal=signal)
        return component
