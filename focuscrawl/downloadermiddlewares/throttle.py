"""AutoThrottle's delay of a host, for the frontier to keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.engine.component import Component
from focuscrawl.engine.meta import URL_ID
from focuscrawl.engine.private import slot_delay

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response


class ThrottleMiddleware(Component):
    """Lets the frontier wait as long between two pages of a host as the downloader's slot does.

    A request that waited in the slot would hold a place that another host could have used.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        """Hand on the delay of the host's slot, which an answer may have changed."""
        number = request.meta.get(URL_ID)
        if number is not None:
            delay = slot_delay(self._crawler, request.meta["download_slot"])
            if delay is not None:
                self._crawl.frontier.set_delay(self._crawl.urls.host(number), delay)
        return response
