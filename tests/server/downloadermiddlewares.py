"""Downloader middlewares of a user's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest

from focuscrawl.engine.meta import URL_ID

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response


class RefusesAnswers:
    """Ignores every fourth request, when its answer is there."""

    def process_response(self, request: Request, response: Response) -> Response:
        if request.meta[URL_ID] % 4 == 3:
            raise IgnoreRequest("too late")
        return response


class RefusesRequests:
    """Ignores every fourth request before it is made."""

    def process_request(self, request: Request) -> None:
        if request.meta[URL_ID] % 4 == 3:
            raise IgnoreRequest("not wanted")
