"""What a bucket may fetch in a round: what was chosen, what is new, and what limits allow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from focuscrawl.crawl.parts.traps import Traps
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.rounds.bucket_urls import bucket_of
from focuscrawl.store.schema import UNFOLLOWED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from focuscrawl.crawl.quotas import Quotas
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.rounds.bucket_urls import BucketUrls


class RoundUrls(UrlTable):
    """A `UrlTable` that holds what was chosen of a bucket, and what is new there.

    Parameters
    ----------
    known : the URLs of the bucket

    Attributes
    ----------
    chosen : numbers of what was chosen
    first : URLs of other buckets, or known ones, that redirects lead to: they come next
    """

    def __init__(self, known: BucketUrls, bucket: int, buckets: int) -> None:
        super().__init__()
        self._known = known
        self._bucket = bucket, buckets
        self._new: dict[int, bool] = {}  # as far as it was asked
        self.chosen: set[int] = set()
        self.first: set[int] = set()

    def holds(self, number: int) -> bool:
        """Tell whether a URL may be fetched in this round."""
        if number in self.chosen:
            return True
        new = self._new.get(number)
        if new is None:
            url, (bucket, buckets) = self[number], self._bucket
            new = bucket_of(url, buckets) == bucket and not self._known.knows(url)
            self._new[number] = new
        return new

    def decided(self) -> Iterator[int]:
        """Yield the URLs that the round has fetched, queued or struck out."""
        for number in range(len(self)):
            if self.state(number) != UNFOLLOWED and self.holds(number):
                yield number

    def leave_to_others(self, number: int, score: float) -> None:
        """Leave a URL to the rounds that follow."""
        if score == math.inf:
            self.first.add(number)


class RoundLimits(Traps):
    """Limits on hosts and patterns, of all rounds; what they bar is left to the next rounds.

    Parameters
    ----------
    before : makes the limits as they were before the round
    """

    def __init__(self, crawl: CrawlState, before: Callable[[], Quotas]) -> None:
        super().__init__(crawl)
        self._before = before

    def reset(self) -> None:
        """Forget the fetches of this round."""
        super().reset()
        self.quotas = self._before()

    def relent(self) -> bool:
        """Let go of all that waits, if it is all barred."""
        frontier = self._crawl.frontier
        if not frontier.all_deferred:
            return False
        for number in frontier.deferred().tolist():
            frontier.remove(number)
        return True
