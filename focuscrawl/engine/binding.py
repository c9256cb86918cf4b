"""Which crawl belongs to which Scrapy crawler."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy.exceptions import NotConfigured

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
    """Return the crawl of `crawler`.

    Raises
    ------
    NotConfigured
        It has none: ``scrapy shell`` and ``fetch`` crawl nothing, and need nothing of ours.
    """
    try:
        return _crawls[crawler]
    except KeyError:
        raise NotConfigured from None
