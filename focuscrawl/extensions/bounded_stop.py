"""Bounds how long a crawl takes to end: downloads, parses and texts that last are given up."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError

from focuscrawl.engine.component import Component
from focuscrawl.engine.page_parsing import parsing_of
from focuscrawl.engine.page_texts import texts_of
from focuscrawl.engine.private import is_closing, wrap_downloads
from focuscrawl.engine.rendering import rendering_of
from focuscrawl.engine.settings_table import STOP_TIMEOUT, TEXTS
from focuscrawl.errors import GivenUpError
from focuscrawl.report.plain_text import counted

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.internet.defer import Deferred

    from focuscrawl.engine.private import Download

logger = logging.getLogger(__name__)

_EVERY = 0.5  # seconds between two looks


class BoundedStop(Component):
    """Cancels downloads that last once the spider is closing, and has their URLs queued again.

    Scrapy waits for every request under way, up to ``DOWNLOAD_TIMEOUT`` and as long again for
    each retry. ``FOCUSCRAWL_STOP_TIMEOUT`` is how long it may, in seconds. A recording answers at
    once; only texts can last there.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if self._crawl.web is not None and not TEXTS.of(crawler.settings):
            raise NotConfigured
        self._grace = STOP_TIMEOUT.of(crawler.settings)
        self._under_way: set[Deferred[Response]] = set()
        self._given_up = False
        self._over = False

    def engine_started(self) -> None:
        """Stand before the download handlers, whichever they are."""
        if self._crawl.web is None:
            wrap_downloads(self._crawler, self._download)
        self._look(None)

    def spider_closed(self) -> None:
        """Look no more."""
        self._over = True

    def _look(self, closing_since: float | None) -> None:
        if self._over:
            return
        if closing_since is None and is_closing(self._crawler):
            closing_since = time.monotonic()
        if closing_since is not None and time.monotonic() - closing_since >= self._grace:
            self._give_up()
        else:
            call_later(_EVERY, self._look, closing_since)

    def _give_up(self) -> None:
        self._given_up = True
        if self._under_way:
            logger.info("gave up %s, queued again", counted(len(self._under_way), "request"))
        for download in list(self._under_way):
            download.cancel()
        parsing_of(self._crawler).give_up()
        rendering_of(self._crawler).give_up()
        texts_of(self._crawler).give_up()

    async def _download(self, download: Download, request: Request) -> Response:
        if self._given_up:
            raise GivenUpError("the crawl ends")
        under_way: Deferred[Response] = deferred_from_coro(download(request))
        self._under_way.add(under_way)
        try:
            return await maybe_deferred_to_future(under_way)
        except (asyncio.CancelledError, CancelledError):
            if self._given_up:
                raise GivenUpError("the crawl ends") from None
            raise
        finally:
            self._under_way.discard(under_way)
