"""Downloads that are broken off or refused: what is no HTML, addresses that are private."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured, StopDownload

from focuscrawl.engine.address_guard import guard_resolver
from focuscrawl.engine.component import Component
from focuscrawl.engine.settings_table import ANY_MEDIA, PRIVATE_ADDRESSES
from focuscrawl.engine.visits import OWN, URL_ID
from focuscrawl.page import is_html, read_content_type

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Headers


class HtmlOnly(Component):
    """Stops a download once its headers name another media type than HTML.

    Off with ``FOCUSCRAWL_ANY_MEDIA = True``. The fetch counts, its body is not loaded. What a
    project's own spider asks for it gets; so does the crawl what it reads besides: PDF, site
    maps and feeds, if it is told to.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if ANY_MEDIA.of(crawler.settings):
            raise NotConfigured

    def headers_received(self, headers: Headers, request: Request) -> None:
        """Look at the Content-Type of what the crawl itself asked for."""
        media_type, _ = read_content_type((headers.get("Content-Type") or b"").decode("latin-1"))
        followed = URL_ID in request.meta and OWN not in request.meta
        if not followed or media_type is None or is_html(media_type):
            return
        if not self._crawl.may_read(request.meta[URL_ID], media_type):
            raise StopDownload(fail=False)


class PrivateAddresses(Component):
    """Sees to it that names are looked up behind the guard, whose handler ever asks for them.

    `LiveDownloadHandler` does so by itself. Where another one stands in its place, such as
    Scrapy's own for HTTP/2, hosts in private networks are not found. A replay asks no network.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if self._crawl.web is not None:
            raise NotConfigured
        self._networks = PRIVATE_ADDRESSES.of(crawler.settings)

    def request_reached_downloader(self) -> None:
        """Guard the resolver that there is by now."""
        guard_resolver(self._networks)
