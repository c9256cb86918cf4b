"""What middlewares, pipelines, extensions and handlers of a crawl have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals

from focuscrawl.engine.binding import crawl_of
from focuscrawl.signals import page_visited

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from focuscrawl.crawl import Crawl

_SIGNALS = {name: each for name, each in vars(signals).items() if type(each) is object}
_SIGNALS["page_visited"] = page_visited


class Component:
    """A component of a crawler whose crawl is open.

    Methods that have the name of a signal are called when it is sent. A component that is not
    wanted raises `scrapy.exceptions.NotConfigured` when it is made.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl: Crawl = crawl_of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the component, and connect it to the signals it has methods for."""
        component = cls(crawler)
        for name, signal in _SIGNALS.items():
            receiver = getattr(component, name, None)
            if receiver is not None:
                crawler.signals.connect(receiver, signal=signal)
        return component
