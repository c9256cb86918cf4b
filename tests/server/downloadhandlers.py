"""Download handlers of a user's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from focuscrawl.downloadhandlers.live import LiveDownloadHandler

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response


class Stamping(LiveDownloadHandler):
    """Says in a header when each request was sent, on a clock that all processes share."""

    async def download_request(self, request: Request) -> Response:
        request.headers["X-Sent"] = repr(time.monotonic())
        return await super().download_request(request)
