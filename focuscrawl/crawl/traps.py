"""Protection from traps: quotas of hosts and URL patterns, near-duplicates."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl.duplicates import MinHashIndex, sketch
from focuscrawl.crawl.part import Part
from focuscrawl.crawl.url_table import url_pattern
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.foundation.urls import host
from focuscrawl.page.documents import URL_LIST_KINDS
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit


#: kinds of events
LIMITED, RAISED, NEAR_DUPLICATE = "limited", "raised", "near-duplicate"
FIRST_OF_HOST = 100  # fetches that need not have been earned
FIRST_OF_PATTERN = 30
EARNED = 20  # fetches for each relevant page more than there are repeats
_REMEMBERED = 10_000  # pages, 30 MB


@dataclass(slots=True)
class Quota:
    """Fetches and relevant pages of one host, or of one pattern.

    Attributes
    ----------
    name : the host or the pattern
    first : fetches that need not have been earned
    fetched : fetches, whatever their outcome
    earned : its relevant pages that are no repeats, and those first found on its pages
    repeats : its duplicates, to the byte or nearly
    closed : no more fetches for now
    reported : it was closed before
    held : ids of the URLs that wait for it to open
    """

    name: str
    first: int
    fetched: int = 0
    earned: int = 0
    repeats: int = 0
    closed: bool = False
    reported: bool = False
    held: list[int] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """What it is a quota of: ``host`` or ``pattern``."""
        return "pattern" if "/" in self.name else "host"

    @property
    def description(self) -> str:
        """Its fetches and relevant pages, for people."""
        words = f"{self.fetched:,} fetches have brought {self.earned:,} relevant pages"
        return f"{words}, {self.repeats:,} repeats" if self.repeats else words

    def balance(self, generosity: int) -> int:
        """Return how many fetches are left."""
        gain = max(self.earned - self.repeats, 0)
        return generosity * (self.first + EARNED * gain) - self.fetched


class Quotas:
    """Limits that grow with the harvest, for every host and every pattern of URLs.

    A quota closes when it has had its first fetches, and 20 more for each relevant page by
    which these outnumber its repeats. It opens when it has earned as many as its first, through
    pages found on it, or when the limits of all are raised. All depends only on the order of the
    fetches and on when limits were raised.

    Attributes
    ----------
    generosity : what all limits are multiplied by; doubled by each raise
    """

    def __init__(self) -> None:
        self.multiplier = 1
        self._quotas: dict[str, Quota] = {}

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], generosity: int) -> Quotas:
        """Return the limits that `rows` were of, with nothing held."""
        quotas = cls()
        quotas.multiplier = generosity
        for row in rows:
            quota = quotas._quota(row["name"])
            quota.fetched, quota.earned = row["fetched"], row["earned"]
            quota.repeats, quota.closed = row["repeats"], row["closed"]
        return quotas

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield what `from_rows` needs to restore these limits."""
        for quota in self._quotas.values():
            yield {
                "name": quota.name,
                "fetched": quota.fetched,
                "earned": quota.earned,
                "repeats": quota.repeats,
                "closed": quota.closed,
            }

    def closed_quota(self, url: str) -> Quota | None:
        """Return the quota that keeps `url` from being fetched now; None if it may be."""
        for name in (host(url), url_pattern(url)):
            quota = self._quotas.get(name)
            if quota is not None and quota.closed:
                return quota
        return None

    def count(
        self, url: str, referrer: str | None, *, earns: bool, repeats: bool
    ) -> Iterator[Quota]:
        """Count a fetch.

        Parameters
        ----------
        url : what was fetched
        referrer : the page it was first found on
        earns : it is a relevant page, and no repeat
        repeats : it is a duplicate, to the byte or nearly

        Yields
        ------
        Quotas that close or open by it
        """
        own = (self._quota(host(url)), self._quota(url_pattern(url)))
        for quota in own:
            quota.fetched += 1
            quota.earned += earns
            quota.repeats += repeats
        yield from filter(self._turned, own)
        if earns and referrer is not None:
            for name in (host(referrer), url_pattern(referrer)):
                quota = self._quota(name)
                if quota not in own:
                    quota.earned += earns
                    if self._turned(quota):
                        yield quota

    def raise_limits(self) -> list[Quota]:
        """Double every limit; return the quotas that open by it."""
        self.multiplier *= 2
        return [quota for quota in self._quotas.values() if self._turned(quota)]

    def _quota(self, name: str) -> Quota:
        quota = self._quotas.get(name)
        if quota is None:
            first = FIRST_OF_PATTERN if "/" in name else FIRST_OF_HOST
            quota = self._quotas[name] = Quota(name, first)
        return quota

    def _turned(self, quota: Quota) -> bool:
        """Close or open a quota if that is due; tell whether it was."""
        left = quota.balance(self.multiplier)
        turn = left >= quota.first if quota.closed else left <= 0
        if turn:
            quota.closed = not quota.closed
        return turn


class Traps(Part):
    """Counts every fetch; defers URLs whose host or pattern has used up its quota.

    Nothing is lost: what is deferred waits until nothing else does; then all limits are doubled.
    So a crawl whose links are all on one host has the same order as without limits.

    Attributes
    ----------
    quotas : as they are now
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self.quotas = Quotas()

    def reset(self) -> None:
        """Forget all quotas; what they deferred is readmitted."""
        self.quotas = Quotas()
        self._crawl.frontier.readmit(self._crawl.frontier.deferred().tolist())
        raised = History(self._crawl.store).events(RAISED)
        self._raised = Counter(event.seq for event in raised)

    def restore(self, fetch: RestoredFetch) -> None:
        """Count a fetch of an earlier run, and raise the limits where that run raised them."""
        stored = fetch.stored
        if stored.again:
            return
        self._count(stored.url, stored.relevance, repeats=fetch.is_duplicate)
        for _ in range(self._raised[stored.seq]):
            self.quotas.raise_limits()

    def before_record(self, visit: PageVisit) -> None:
        """Count a fetch."""
        visit.events += self._count(visit.url_id, visit.relevance, repeats=visit.is_duplicate)

    def readmit(self) -> bool:
        """Raise all limits if every URL that waits is deferred; tell whether that was so."""
        if not self._crawl.frontier.all_deferred:
            return False
        for quota in self.quotas.raise_limits():
            self._readmit(quota.held)
        times = self.quotas.multiplier
        self._crawl.record_event(
            RAISED, f"all limits are {times} times as high: nothing else waits"
        )
        return True

    def _count(self, url_id: int, relevance: float, *, repeats: bool) -> list[tuple[str, str]]:
        events = []
        worth = self._crawl.strategy.page_value(url_id, relevance)
        url, referrer = self._crawl.urls[url_id], self._crawl.urls.referrer(url_id)
        earns = worth > RELEVANT and not repeats
        for quota in self.quotas.count(url, referrer, earns=earns, repeats=repeats):
            if not quota.closed:
                self._readmit(quota.held)
            elif not quota.reported:
                quota.reported = True
                events.append(
                    (LIMITED, f"{quota.name}: {quota.description}; other links come first")
                )
        return events

    def admits(self, url_id: int) -> bool:
        """Tell whether neither the URL's host nor its pattern has used up its quota."""
        quota = self.quotas.closed_quota(self._crawl.urls[url_id])
        if quota is not None:
            quota.held.append(url_id)
        return quota is None

    def _readmit(self, held: list[int]) -> None:
        self._crawl.frontier.readmit(held)
        held.clear()


class NearDuplicates(Part):
    """Compares every page with the last ones that were no repeats, by MinHash.

    A near-duplicate is judged and expanded, but counts as a repeat for quotas.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._index = MinHashIndex(_REMEMBERED)

    def reset(self) -> None:
        """Forget all pages."""
        self._index = MinHashIndex(_REMEMBERED)

    def remember(self, url: int, minhash: bytes) -> None:
        """Add a page that this crawl has not fetched."""
        self._index.find_or_add(url, minhash)

    def restore(self, fetch: RestoredFetch) -> None:
        """Find out again whether a page of an earlier run is a near-duplicate."""
        minhash = fetch.stored.minhash
        if minhash is not None and not fetch.is_duplicate:
            fetch.is_duplicate = self._index.find_or_add(fetch.stored.url, minhash) is not None

    def on_judged(self, visit: PageVisit) -> None:
        """Find out whether a page is a near-duplicate; its MinHash is stored with its digest."""
        assert visit.view is not None
        if visit.view.kind in URL_LIST_KINDS:
            return
        visit.minhash = sketch(visit.view.words) or b""
        if visit.minhash:
            visit.near_duplicate = self._index.find_or_add(visit.url_id, visit.minhash)

    def before_record(self, visit: PageVisit) -> None:
        """Record the event of a near-duplicate."""
        if visit.near_duplicate is not None:
            other, alike = visit.near_duplicate
            detail = f"{visit.url}: {alike:.0%} like {self._crawl.urls[other]}"
            visit.events.append((NEAR_DUPLICATE, detail))
