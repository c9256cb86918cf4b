"""Pages that say nearly the same as an earlier one, as they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.crawl.minhash import MinHashIndex, sketch
from focuscrawl.crawl.part import Part

if TYPE_CHECKING:
    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit

_REMEMBERED = 10_000  # pages, 30 MB
#: kind of the event
NEAR_DUPLICATE = "near-duplicate"


class NearDuplicates(Part):
    """Compares every page with the last ones that said something new, by MinHash.

    What resembles one of them is judged and expanded, but counts as a repeat for quotas.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._index = MinHashIndex(_REMEMBERED)

    def reset(self) -> None:
        """Forget all pages."""
        self._index = MinHashIndex(_REMEMBERED)

    def remember(self, url: int, minhash: bytes) -> None:
        """Compare pages with one that this crawl has not fetched, too."""
        self._index.find_or_add(url, minhash)

    def restore(self, fetch: RestoredFetch) -> None:
        """Find out again whether a page of an earlier run resembled one before it."""
        minhash = fetch.stored.minhash
        if minhash is not None and not fetch.repeats:
            fetch.repeats = self._index.find_or_add(fetch.stored.url, minhash) is not None

    def on_judged(self, visit: PageVisit) -> None:
        """Find out whether a page says something new; its MinHash goes with its digest."""
        assert visit.view is not None
        visit.minhash = sketch(visit.view.words) or b""
        if visit.minhash:
            visit.resembles = self._index.find_or_add(visit.number, visit.minhash)

    def on_page(self, visit: PageVisit) -> None:
        """Tell of what resembles."""
        if visit.resembles is not None:
            other, alike = visit.resembles
            detail = f"{visit.url}: {alike:.0%} like {self._crawl.urls[other]}"
            visit.events.append((NEAR_DUPLICATE, detail))
