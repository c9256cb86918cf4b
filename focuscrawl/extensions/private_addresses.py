"""Holds every download handler of a crawl to the addresses that it may connect to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured

from focuscrawl.engine.address_guard import guard_resolver
from focuscrawl.engine.binding import crawl_of
from focuscrawl.engine.settings_table import PRIVATE_ADDRESSES

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class PrivateAddresses:
    """Sees to it that names are looked up behind the guard, whose handler ever asks for them.

    `LiveDownloadHandler` does so by itself. Where another one stands in its place, such as
    Scrapy's own for HTTP/2, hosts in private networks are not found. A replay asks no network.
    """

    def __init__(self, crawler: Crawler) -> None:
        if crawl_of(crawler).web is not None:
            raise NotConfigured
        self._networks = PRIVATE_ADDRESSES.of(crawler.settings)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the extension, or raise NotConfigured."""
        extension = cls(crawler)
        crawler.signals.connect(extension.guard, signal=signals.request_reached_downloader)
        return extension

    def guard(self) -> None:
        """Guard the resolver that there is by now."""
        guard_resolver(self._networks)
