"""Downloader middlewares of a user's."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest

from focuscrawl.engine.meta import URL_ID

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
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


class Heart:
    """Beats as often as the event loop lets it, from when it is made until it is stopped."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.call_soon(self._beat)
        self.beats = 0

    def _beat(self) -> None:
        self.beats += 1
        self._next = self._loop.call_later(0.001, self._beat)

    def stop(self) -> None:
        self._next.cancel()


class StartsHeart:
    """Has a heart beat from here on to `StopsHeart`; put one on either side of a middleware."""

    def process_response(self, request: Request, response: Response) -> Response:
        request.meta["heart"] = Heart()
        return response


class StopsHeart:
    """Writes down a line of JSON with the URL and the beats, in the file ``TEST_HEART``."""

    def __init__(self, log: Path) -> None:
        self._log = log

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(Path(crawler.settings["TEST_HEART"]))

    def process_response(self, request: Request, response: Response) -> Response:
        heart: Heart = request.meta.pop("heart")
        heart.stop()
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps([request.url, heart.beats]) + "\n")
        return response
