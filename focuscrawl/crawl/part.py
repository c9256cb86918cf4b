"""The interface of everything that takes part in a crawl: learning, distilling, limits, ..."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from focuscrawl.crawl.visit import PageVisit
    from focuscrawl.store.history import StoredFetch

POLL_INTERVAL = 0.002  # seconds; how long a crawl waits for something that is worked out beside it


@dataclass(slots=True)
class RestoredFetch:
    """A fetch of an earlier run, as `Part.restore` gets it.

    Attributes
    ----------
    stored : what the store has of it
    repeats : it is a duplicate; parts that find it a near-duplicate set this
    last_of_seq : no other fetch has its seq, or the other ones came before
    urls, scores : what the strategy made of its links again: int64 (m,), float64 (m,)
    """

    stored: StoredFetch
    is_duplicate: bool
    last_of_seq: bool
    urls: NDArray[np.int64]
    scores: NDArray[np.float64]


class Part:
    """Takes part in a crawl; does nothing by itself.

    The loop calls these methods of all parts, in the order of `CrawlState.parts`. First `reset`,
    `restore` for every earlier fetch, and `restored`. Then `poll`, `stop_reason` and `wait` for
    each call of `Crawl.next`, and `admits` for the best URLs. Then `on_judged`, `on_page` and
    `on_recorded` for each visit. At the end `close`, and `release` when everything is on disk.
    What only one part does is no method here: the loop asks for that part by its class, see
    `CrawlState.part`.
    """

    def reset(self) -> None:
        """Forget every fetch: all of them will be restored, for another critic and strategy."""

    def restore(self, fetch: RestoredFetch) -> None:
        """Take in a fetch of an earlier run; they come in the order in which they were made."""

    def on_restored(self) -> None:
        """Resume where the earlier run stopped: every fetch was restored."""

    def poll(self, now: float) -> bool:
        """Apply the results of what ran beside the crawl.

        Returns
        -------
        True if nothing may be fetched now; the parts after this one are not polled then
        """
        return False

    def stop_reason(self) -> str | None:
        """Return why nothing will be fetched any more; None while something may."""
        return None

    def wait(self, now: float) -> float | None:
        """Return for how long nothing may be fetched; called when every part was polled.

        Returns
        -------
        Seconds until the crawl should be asked again; inf: when a host is ready; None: fetch
        """
        return None

    def admits(self, url_id: int) -> bool:
        """Tell whether the best URL may be fetched; if not, it is deferred."""
        return True

    def on_judged(self, visit: PageVisit) -> None:
        """Look at a page, site map or feed that was judged, before its links are scored."""

    def before_record(self, visit: PageVisit) -> None:
        """Take in a visit that is about to be recorded; may add to its `PageVisit.events`."""

    def on_recorded(self, visit: PageVisit) -> None:
        """Start what is due: the visit was recorded and counted."""

    def close(self) -> None:
        """Stop what is under way; what this changes is recorded with the stop reason."""

    def release(self) -> None:
        """Release what is shared with others: everything is on disk."""
