"""Back-off: how long a host is left alone after requests without an answer."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

#: the event of a host that is left alone; detail: ``host: why``
LEFT = "left"


class HostBackoff:
    """A wait for every request in a row that a host left without an answer, doubled each time.

    Parameters
    ----------
    first, longest : seconds; waits double from the one to the other
    failures : requests without an answer in a row after which a host is left alone; 0: never
    per_host : requests that a host may be sent at once, which may fail together

    Notes
    -----
    A host that names its own wait (``Retry-After``, RFC 9110 section 10.2.3) gets it; one that
    wants more than `longest` is left alone, since nothing is gained by a crawl that stands still.
    """

    def __init__(self, first: float, longest: float, failures: int = 0, per_host: int = 1) -> None:
        self._first = first
        self._longest = longest
        self._failures = failures * per_host
        self._per_host = per_host
        self._in_a_row: Counter[int] = Counter()

    def answered(self, host: int) -> None:
        """Forget the failures of `host`."""
        self._in_a_row.pop(host, None)

    def failed(self, host: int, retry_after: float | None = None) -> float:
        """Count a request without an answer.

        Parameters
        ----------
        retry_after : seconds that the host asked for

        Returns
        -------
        Seconds to leave the host in peace; inf: for as long as the crawl runs.
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
    """Read a ``Retry-After`` header, seconds or a date.

    Returns
    -------
    Seconds from `now`, 0 or more; None if it says neither.
    """
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return float(text[:18])  # more digits are for ever all the same
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - now).total_seconds())
