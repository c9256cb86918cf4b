"""Which crawl belongs to which Scrapy crawler."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from focuscrawl.crawl import Crawl

_crawls: WeakKeyDictionary[Crawler, Crawl] = WeakKeyDictionary()


def bind_crawl(crawler: Crawler, crawl: Crawl) -> None:
    """Let the components of `crawler` find `crawl`."""
    _crawls[crawler] = crawl


def has_crawl(crawler: Crawler) -> bool:
    """Tell whether `crawler` has a crawl."""
    return crawler in _crawls


def crawl_of(crawler: Crawler) -> Crawl:
    """Return the crawl of `crawler`; KeyError if it has none."""
    return _crawls[crawler]
