"""Downloads that are stopped or refused: no HTML, private addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured, StopDownload

from focuscrawl.engine.address_guard import guard_resolver
from focuscrawl.engine.component import Component
from focuscrawl.engine.visits import OWN, URL_ID, header_of
from focuscrawl.page import is_html, read_content_type

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Headers


class HtmlOnly(Component):
    """Stops a download once its headers name another media type than HTML.

    Off with ``FOCUSCRAWL_ANY_MEDIA = True``. The fetch counts, its body is not loaded. Requests of
    a project's own spider are not stopped, nor PDF, site maps and feeds if the crawl reads them.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if self._crawl.config.any_media:
            raise NotConfigured

    def headers_received(self, headers: Headers, request: Request) -> None:
        """Check the Content-Type of an answer to the crawl itself."""
        media_type, _ = read_content_type(header_of(headers, "Content-Type"))
        followed = URL_ID in request.meta and OWN not in request.meta
        if not followed or media_type is None or is_html(media_type):
            return
        if not self._crawl.can_read(request.meta[URL_ID], media_type):
            raise StopDownload(fail=False)


class PrivateAddresses(Component):
    """Guards the name resolver for all download handlers.

    `LiveDownloadHandler` does so by itself; with another one, such as Scrapy's own for HTTP/2,
    hosts in private networks are not found. A replay uses no network.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if self._crawl.web is not None:
            raise NotConfigured
        self._networks = self._crawl.config.private_addresses

    def request_reached_downloader(self) -> None:
        """Guard the present resolver."""
        guard_resolver(self._networks)
