"""Waits between requests to a host: back-off, and AutoThrottle's delay for the frontier."""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from focuscrawl.downloadermiddlewares.robots import RobotsUnreachableError
from focuscrawl.engine.component import Component
from focuscrawl.engine.private import slot_delay
from focuscrawl.engine.visits import URL_ID, describe_error, retry_after_of
from focuscrawl.frontier.hosts import HOST_SKIPPED, HostBackoff

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


logger = logging.getLogger(__name__)

_BUSY = (429, 502, 503, 504)
# causes of failure of a host that does not answer; one that sends half a page, or no HTTP, does
_ABSENT = ("timed out", "refused", "host not found", "hung up", "no TLS", "certificate")


class BackoffMiddleware(Component):
    """Holds a host in the frontier for as long as it asks, or longer after every failure.

    It sits between the downloader and Scrapy's retries: a request to be retried goes back to the
    frontier, and leaves it when its host is ready again. A host that keeps failing, or asks for
    too long a wait, is skipped until the crawl is resumed. Off in replays.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if self._crawl.web is not None:
            raise NotConfigured
        config = self._crawl.config
        longest = max(config.backoff, config.backoff_max)
        failures, per_host = config.host_failures, config.per_host
        self._patience = HostBackoff(config.backoff, longest, failures, per_host)

    def process_response(self, request: Request, response: Response) -> Response:
        """Count the answer to a request from the frontier, as a failure if the host is busy."""
        url_id = request.meta.get(URL_ID)
        if url_id is None:
            return response
        if response.status in _BUSY:
            self._failed(url_id, f"HTTP {response.status}", retry_after_of(response))
        else:
            self._patience.record_answer(self._crawl.urls.host_id(url_id))
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Count a request that brought no answer."""
        url_id = request.meta.get(URL_ID)
        if url_id is None:
            return
        why = describe_error(exception).partition(":")[0]
        if isinstance(exception, RobotsUnreachableError):
            self._failed(url_id, why, exception.retry_after)
        elif why in _ABSENT:
            self._failed(url_id, why, None)

    def _failed(self, url_id: int, why: str, retry_after: float | None) -> None:
        host = self._crawl.urls.host_id(url_id)
        wait = self._patience.record_failure(host, retry_after)
        if not math.isinf(wait):
            self._crawl.frontier.hold(host, time.monotonic() + wait)
            return
        if retry_after is not None:
            why += f", asks for {retry_after:,.0f} s"
        logger.info("%s is left alone: %s", self._crawl.urls.host_name(url_id), why)
        self._crawl.frontier.hold(host, math.inf)
        self._crawl.record_event(HOST_SKIPPED, f"{self._crawl.urls.host_name(url_id)}: {why}")


class ThrottleMiddleware(Component):
    """Sets the delay of a host in the frontier to that of the downloader's slot.

    A request that waited in the slot would take the place of another host's.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        """Pass on the delay of the host's slot, which an answer may have changed."""
        url_id = request.meta.get(URL_ID)
        if url_id is not None:
            delay = slot_delay(self._crawler, request.meta["download_slot"])
            if delay is not None:
                self._crawl.frontier.set_delay(self._crawl.urls.host_id(url_id), delay)
        return response
