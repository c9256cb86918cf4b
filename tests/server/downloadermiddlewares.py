"""Downloader middlewares of a user's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy.exceptions import IgnoreRequest

from focuscrawl.engine.visits import URL_ID

from .heart import start_heart, stop_heart

if TYPE_CHECKING:
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


class WritesPriorities:
    """Appends URL and priority of every request to the file ``TEST_PRIORITIES``."""

    def __init__(self, log: str) -> None:
        self._log = Path(log)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.settings["TEST_PRIORITIES"])

    def process_request(self, request: Request) -> None:
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{json.dumps([request.url, request.priority])}\n")


class Impatient:
    """Waits ``TEST_SECONDS`` for answers from URLs that ``TEST_IMPATIENT`` matches."""

    def __init__(self, seconds: float, urls: str) -> None:
        self._seconds = seconds
        self._urls = re.compile(urls)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        return cls(settings.getfloat("TEST_SECONDS"), settings["TEST_IMPATIENT"])

    def process_request(self, request: Request) -> None:
        if self._urls.fullmatch(request.url):
            request.meta["download_timeout"] = self._seconds


class StartsHeart:
    """Has a heart beat from here on to the middleware or the pipeline that stops it."""

    def process_response(self, request: Request, response: Response) -> Response:
        start_heart(request.url)
        return response


class StopsHeart:
    """Writes down how often it has beaten, in the file ``TEST_HEART``."""

    def __init__(self, log: str) -> None:
        self._log = log

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.settings["TEST_HEART"])

    def process_response(self, request: Request, response: Response) -> Response:
        stop_heart(request.url, self._log)
        return response
