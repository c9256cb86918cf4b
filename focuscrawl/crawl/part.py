"""Base class of the parts of a crawl, such as stop rules, discounts and training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from focuscrawl.crawl.visit import PageVisit
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.store.history import StoredFetch

POLL_INTERVAL = 0.002  # seconds between polls of a background thread


@dataclass(slots=True)
class RestoredFetch:
    """A fetch of an earlier run of the crawl, as passed to `Part.restore`.

    Attributes
    ----------
    is_duplicate : bool
        True for an exact duplicate. Parts that find a near-duplicate set it, too.
    last_of_seq : bool
        True if no later fetch has the same ``seq``.
    urls, scores : int64 and float64 arrays of shape (n_urls,)
        URLs that the strategy scored again, and their scores.
    """

    stored: StoredFetch
    is_duplicate: bool
    last_of_seq: bool
    urls: Ints
    scores: Floats


class Part:
    """Base class of the parts of a crawl; every method does nothing by default.

    The crawl loop calls each method for all parts, in the order of `CrawlState.parts`. When a
    crawl opens, the crawl loop calls `reset`, then `restore` for every earlier fetch, then
    `on_restored`. In `Crawl.next`, the crawl loop calls `poll`, `stop_reason` and `wait`, and
    calls `halvings` for the best URLs. For each visit (fetched page), the crawl loop calls
    `on_judged`, `before_record` and `on_recorded`. At the end of the crawl, the loop calls
    `close`, and `release` when all records are on disk.

    To call a method that only one part has, the crawl loop finds the part by its class
    (`CrawlState.part`).
    """

    def reset(self) -> None:
        """Discard all state, before all fetches are restored with a new critic and strategy."""

    def restore(self, fetch: RestoredFetch) -> None:
        """Process a fetch of an earlier run; the fetches are passed in their original order."""

    def on_restored(self) -> None:
        """Prepare the next run, after every fetch of earlier runs was restored."""

    def poll(self, now: float) -> bool:
        """Apply the results of finished background work.

        Returns
        -------
        bool
            True if the crawl must not start a fetch now. Later parts are not polled then.
        """
        return False

    def stop_reason(self) -> str | None:
        """Return the reason to stop the crawl now, or None."""
        return None

    def wait(self, now: float) -> float | None:
        """Return the seconds to wait before the next fetch; all parts were polled before the call.

        Returns
        -------
        float or None
            Seconds until the next call; inf to wait until a host is ready; None to fetch now.
        """
        return None

    def halvings(self, url_id: int) -> int:
        """Return how often the frontier halves the score of the best URL."""
        return 0

    def on_judged(self, visit: PageVisit) -> None:
        """Process a judged page, site map or feed, before its links are scored."""

    def before_record(self, visit: PageVisit) -> None:
        """Process a fetched page before the loop records it; may append to `PageVisit.events`."""

    def on_recorded(self, visit: PageVisit) -> None:
        """Process a fetched page after the loop has recorded and counted it."""

    def close(self) -> None:
        """Stop background work; the crawl then stores the changes with the stop reason."""

    def release(self) -> None:
        """Release shared resources, after all records were written to disk."""
