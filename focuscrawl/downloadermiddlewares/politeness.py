"""Delays between requests to a host: back-off after failures, and delays by AutoThrottle."""

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
from focuscrawl.foundation.backoff import HostBackoff
from focuscrawl.frontier.hosts import HOST_SKIPPED

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


logger = logging.getLogger(__name__)

_SLOT = "download_slot"
_BUSY_STATUSES = (429, 502, 503, 504)
# causes of a failed request that mean that the host does not answer
_CONNECTION_FAILURES = (
    "timed out",
    "refused",
    "host not found",
    "hung up",
    "no TLS",
    "certificate",
)


class BackoffMiddleware(Component):
    """Delays the queued URLs of a host that is busy or does not answer.

    A host is delayed for the time in its header ``Retry-After``, or for a time that grows with
    every failure. A host is skipped until the crawl is resumed if the host keeps failing or asks
    for too long a delay. The middleware is between the downloader and Scrapy's retry middleware,
    so that a retried request waits in the frontier until its host is ready. Replays do not use the
    middleware `BackoffMiddleware`.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if self._crawl.web is not None:
            raise NotConfigured
        config = self._crawl.config
        longest = max(config.backoff, config.backoff_max)
        failures, per_host = config.host_failures, config.per_host
        self._backoff = HostBackoff(config.backoff, longest, failures, per_host)

    def process_response(self, request: Request, response: Response) -> Response:
        """Count the response as a success, or as a failure if its status means a busy host."""
        url_id = request.meta.get(URL_ID)
        if url_id is None:
            return response
        if response.status in _BUSY_STATUSES:
            self._failed(url_id, f"HTTP {response.status}", retry_after_of(response))
        else:
            self._backoff.record_answer(self._crawl.urls.host_id(url_id))
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Count a request that got no response as a failure of the host."""
        url_id = request.meta.get(URL_ID)
        if url_id is None:
            return
        why = describe_error(exception).partition(":")[0]
        if isinstance(exception, RobotsUnreachableError):
            self._failed(url_id, why, exception.retry_after)
        elif why in _CONNECTION_FAILURES:
            self._failed(url_id, why, None)

    def _failed(self, url_id: int, why: str, retry_after: float | None) -> None:
        host = self._crawl.urls.host_id(url_id)
        wait = self._backoff.record_failure(host, retry_after)
        if not math.isinf(wait):
            self._crawl.frontier.hold(host, time.monotonic() + wait)
            return
        if retry_after is not None:
            why += f", asks for {retry_after:,.0f} s"
        logger.info("Skipping host %s: %s", self._crawl.urls.host_name(url_id), why)
        self._crawl.frontier.hold(host, math.inf)
        self._crawl.record_event(HOST_SKIPPED, f"{self._crawl.urls.host_name(url_id)}: {why}")


class ThrottleMiddleware(Component):
    """Copies the delay of a host from Scrapy's downloader slot to the frontier.

    Requests to the host wait in the frontier instead of in the downloader slot. A request that
    waits in the downloader slot would take up one of ``CONCURRENT_REQUESTS``. A request that was
    not sent does not delay the next request. Examples are requests with a cached response and
    requests that robots.txt forbids.
    """

    def process_request(self, request: Request) -> None:
        """Let Scrapy's downloader choose the slot for the request."""
        if URL_ID in request.meta:
            request.meta.pop(_SLOT, None)

    def process_response(self, request: Request, response: Response) -> Response:
        """Copy the delay of the host's downloader slot, which AutoThrottle may have changed."""
        self._update_delay(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Copy the delay of the host's downloader slot to the frontier."""
        self._update_delay(request)

    def _update_delay(self, request: Request) -> None:
        url_id = request.meta.get(URL_ID)
        if url_id is None:
            return
        if _SLOT not in request.meta:  # the downloader did not get the request
            self._crawl.frontier.cancel_delay(url_id, time.monotonic())
            return
        delay = slot_delay(self._crawler, request.meta[_SLOT])
        if delay is not None:
            self._crawl.frontier.set_delay(self._crawl.urls.host_id(url_id), delay)
