"""Back-off of hosts after failed requests, and the header ``Retry-After``."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


class HostBackoff:
    """Exponential back-off of a host after consecutive failed requests.

    Parameters
    ----------
    first, longest : first and longest wait in seconds; waits double in between
    failures : consecutive failures after which a host is skipped; 0: never
    per_host : concurrent requests to a host, which may fail together

    Notes
    -----
    The back-off respects ``Retry-After`` (RFC 9110 section 10.2.3). A host that asks for a wait
    above `longest` is skipped, so that the crawl does not stall.
    """

    def __init__(self, first: float, longest: float, failures: int = 0, per_host: int = 1) -> None:
        self._first = first
        self._longest = longest
        self._failures = failures * per_host
        self._per_host = per_host
        self._in_a_row: Counter[int] = Counter()

    def record_answer(self, host: int) -> None:
        """Reset the count of failures of `host` after a response."""
        self._in_a_row.pop(host, None)

    def record_failure(self, host: int, retry_after: float | None = None) -> float:
        """Count a failed request.

        Parameters
        ----------
        retry_after : wait in seconds that the host asked for

        Returns
        -------
        Seconds until the next request to the host; inf: skip the host.
        """
        self._in_a_row[host] += 1
        count = self._in_a_row[host]
        if retry_after is not None and retry_after > self._longest:
            return math.inf
        if 0 < self._failures <= count:
            return math.inf
        doublings = min((count - 1) // self._per_host, 60)
        wait = min(self._first * 2.0**doublings, self._longest)
        return max(wait, retry_after or 0.0)


def read_retry_after(text: str, now: datetime) -> float | None:
    """Return the delay in seconds of a header ``Retry-After``; None if the header is invalid."""
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return float(text[:18])  # larger numbers would overflow
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - now).total_seconds())
