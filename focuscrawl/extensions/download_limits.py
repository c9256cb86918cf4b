"""Extensions that stop downloads of media other than HTML, and refuse private addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured, StopDownload

from focuscrawl.engine.address_guard import guard_resolver
from focuscrawl.engine.component import Component
from focuscrawl.engine.visits import OWN_REQUEST, URL_ID, content_type_of
from focuscrawl.page import can_be_html

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Headers


class HtmlOnly(Component):
    """Stops the download of a response if its headers name a media type other than HTML or XML.

    A stopped download counts against the budget. Downloads for requests of a project's own spider
    are not stopped. Downloads of PDF files, site maps and feeds are not stopped if the crawl reads
    them. The setting ``FOCUSCRAWL_ANY_MEDIA = True`` disables the extension.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if self._crawl.config.any_media:
            raise NotConfigured

    def headers_received(self, headers: Headers, request: Request) -> None:
        """Check the header Content-Type of the response to a request from the frontier."""
        media_type, _ = content_type_of(headers)
        followed = URL_ID in request.meta and OWN_REQUEST not in request.meta
        if not followed or media_type is None or can_be_html(media_type):
            return
        if not self._crawl.can_read(request.meta[URL_ID], media_type):
            raise StopDownload(fail=False)


class PrivateAddresses(Component):
    """Refuses private IP addresses in the name resolver, for all download handlers.

    `LiveDownloadHandler` also refuses private addresses itself. With another handler, such as
    Scrapy's own for HTTP/2, the resolver fails for hosts in private networks. The extension is
    disabled in replays, which use no network connection.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if self._crawl.web is not None:
            raise NotConfigured
        self._networks = self._crawl.config.private_addresses

    def request_reached_downloader(self) -> None:
        """Put the address check in front of the current name resolver."""
        guard_resolver(self._networks)
