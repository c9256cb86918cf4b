"""What takes part in a crawl: one lifecycle for learning, distilling, limits and all the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from focuscrawl.crawl.visit import PageVisit, Visit
    from focuscrawl.store.history import StoredFetch
    from focuscrawl.strategies import JudgedPage


@dataclass(slots=True)
class RestoredFetch:
    """A fetch of an earlier run, as parts are told of it.

    Attributes
    ----------
    stored : what the store has of it
    repeats : it said nothing new: a duplicate; parts that find it a near-duplicate set this
    last_of_seq : no other fetch has its seq, or those that have came before
    urls, scores : what the strategy made of its links again: int64 (m,), float64 (m,)
    """

    stored: StoredFetch
    repeats: bool
    last_of_seq: bool
    urls: NDArray[np.int64]
    scores: NDArray[np.float64]


class Metric(NamedTuple):
    """A number for people who watch a crawl."""

    name: str
    text: str
    value: float


class Visits(Protocol):
    """What is done with an answer; see `focuscrawl.crawl.first_visits.FirstVisits`."""

    def judge(self, visit: PageVisit) -> None:
        """Find out what the answer is, and have the critic judge it if it is a page."""
        ...

    def begin_expansion(self, visit: PageVisit) -> JudgedPage | None:
        """Let the strategy know; return the page if its links are to be scored and queued."""
        ...

    def record(self, visit: PageVisit, now: float) -> Visit:
        """Write down all that the visit changes, in one transaction."""
        ...


class Part:
    """Takes part in a crawl; does nothing by itself.

    The loop calls the methods of all parts, in the order in which they were put together. In a
    run these are: `reset`, `restore` for every earlier fetch, `restored`; then for each call of
    `Crawl.next` `poll` and `holds_back`, and for each visit `on_judged`, `on_page` and
    `on_recorded`; at the end `close`, and when everything is on disk `release`.

    Attributes
    ----------
    pause : seconds until a crawl that this part holds back should be asked again; inf: when a
        host is ready, or something else happens
    """

    pause = 0.002

    # -- the past --------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget every fetch: another critic and strategy begin, and the past is told again."""

    def restore(self, fetch: RestoredFetch) -> None:
        """Take in a fetch of an earlier run; they come in the order in which they were made."""

    def restored(self) -> None:
        """Go on where the earlier run ended: `restore` has told everything."""

    # -- what comes next -------------------------------------------------------------------

    def poll(self, now: float) -> bool:
        """Take up what was worked out beside the crawl.

        Returns
        -------
        True if nothing may be fetched now, and no part after this one asked either
        """
        return False

    def holds_back(self) -> bool:
        """Tell whether nothing may be fetched now; asked after every part was polled."""
        return False

    @property
    def busy(self) -> bool:
        """True while something is under way that may bring links to follow."""
        return False

    def stop_reason(self) -> str | None:
        """Return why nothing will be fetched any more; None while something may."""
        return None

    def admits(self, number: int) -> bool:
        """Tell whether the best URL may be fetched; if not, it waits until it is readmitted."""
        return True

    def relent(self) -> bool:
        """Let go of what is held back, as nothing else can be fetched; True if there was any."""
        return False

    def began(self, number: int) -> None:
        """Take note that a URL was given out."""

    def did_not_fetch(self, number: int) -> None:
        """Take note that a URL that was given out was not fetched: it waits again, or never."""

    def conditions(self, number: int) -> dict[str, str]:
        """Return header fields that ask for a page only if it has changed [RFC 9110, 13.1]."""
        return {}

    # -- what came of it -------------------------------------------------------------------

    def visits_of(self, number: int) -> Visits | None:
        """Return what sees to the answer for a URL; None: what does for pages new to the crawl."""
        return None

    def told(self, origin: str, site_maps: Iterable[str]) -> None:
        """Take note of the site maps that the robots.txt of an origin (`http://host`) names."""

    def lists(self, number: int) -> bool:
        """Tell whether a URL may be a site map or a feed, and is to be read as one."""
        return False

    def on_listed(self, visit: PageVisit) -> None:
        """Look at a site map or a feed, before its links are scored."""

    def on_judged(self, visit: PageVisit) -> None:
        """Look at a page that the critic has judged, before its links are scored."""

    def on_page(self, visit: PageVisit) -> None:
        """Take in a visit that is about to be recorded, and add to its `PageVisit.events`."""

    def on_recorded(self, visit: PageVisit) -> None:
        """Begin what is due: the visit was recorded and counted."""

    def metrics(self) -> Iterable[Metric]:
        """Return what to tell people who watch; asked in any thread."""
        return ()

    # -- the end ---------------------------------------------------------------------------

    def close(self) -> None:
        """End what is under way; what this changes is recorded with the stop reason."""

    def release(self) -> None:
        """Let go of what is shared with others: everything is on disk."""
