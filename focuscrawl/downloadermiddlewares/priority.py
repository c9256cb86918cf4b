"""The apprentice's score of a link as the priority of its request."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from focuscrawl.engine.component import Component
from focuscrawl.engine.meta import OWN, UNANSWERED, URL_ID

if TYPE_CHECKING:
    from scrapy import Request

SCALE = 1000  # priority of a link whose score is 1
SEED = 1_000_000  # priority of a start URL, which comes before every link


class PriorityMiddleware(Component):
    """Sets `Request.priority` from the score that the strategy has for the link now.

    The frontier has put the requests in the order of these scores, which are floats and change
    while links wait; what comes after it (other middlewares, retries, the downloader, logs)
    has the score as Scrapy's own number.
    """

    def process_request(self, request: Request) -> None:
        """Set the priority of a request that only the frontier has asked for."""
        if OWN in request.meta:
            return
        score = self._crawl.in_flight.get(request.meta.get(URL_ID, -1))
        if score is not None:
            request.priority = SEED if score == math.inf else round(SCALE * score)

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Mark a request that got no answer: none of the middlewares wants it made again."""
        request.meta[UNANSWERED] = True
