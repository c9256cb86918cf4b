"""Protection from crawler traps: quotas of hosts and URL patterns, and near-duplicates."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl.duplicates import MinHashIndex, is_sketch
from focuscrawl.crawl.part import Part
from focuscrawl.crawl.url_table import url_pattern
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.foundation.urls import host
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit


#: kinds of events
LIMITED, RAISED, NEAR_DUPLICATE = "limited", "raised", "near-duplicate"
FIRST_OF_HOST = 100  # fetches of a host before relevant pages are required
FIRST_OF_PATTERN = 30
EARNED = 20  # further fetches for each relevant page, less the duplicates
_MAX_PAGES = 10_000  # in the index of near-duplicates; 30 MB


@dataclass(slots=True)
class Quota:
    """Limit on the fetches of one host or URL pattern, which the attribute ``name`` gives."""

    name: str
    first: int  # fetches before relevant pages are required
    fetched: int = 0  # fetches with any outcome
    earned: int = 0  # distinct relevant pages, fetched or first found on pages of this quota
    repeats: int = 0  # exact duplicates and near-duplicates
    closed: bool = False  # True while the quota is used up
    reported: bool = False  # True if the event was recorded
    deferred_ids: list[int] = field(default_factory=list)  # URLs deferred by this quota

    @property
    def kind(self) -> str:
        """Kind of the quota: ``host`` or ``pattern``."""
        return "pattern" if "/" in self.name else "host"

    @property
    def description(self) -> str:
        """Return the numbers of fetches, relevant pages and duplicates of the quota, as a text."""
        words = f"{self.fetched:,} fetches, {self.earned:,} relevant pages"
        return f"{words}, {self.repeats:,} duplicates" if self.repeats else words

    def balance(self, multiplier: int) -> int:
        """Return the number of fetches that the quota still allows; negative if exceeded."""
        gain = max(self.earned - self.repeats, 0)
        return multiplier * (self.first + EARNED * gain) - self.fetched


class Quotas:
    """Quotas of fetches for hosts and URL patterns, which grow with the relevant pages found.

    A quota allows `Quota.first` fetches, and 20 more fetches for each relevant page in excess of
    the number of duplicates. A used-up quota opens again when it allows `Quota.first` further
    fetches, because its pages led to relevant pages or all quotas were raised. Quotas depend only
    on the order of the fetches and on the times when all quotas were raised.

    Attributes
    ----------
    multiplier : int
        Factor of all limits, doubled by each `raise_limits`.
    """

    def __init__(self) -> None:
        self.multiplier = 1
        self._quotas: dict[str, Quota] = {}

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], multiplier: int) -> Quotas:
        """Create the quotas from stored `rows`; no quota has deferred URLs yet."""
        quotas = cls()
        quotas.multiplier = multiplier
        for row in rows:
            quota = quotas._quota(row["name"])
            quota.fetched, quota.earned = row["fetched"], row["earned"]
            quota.repeats, quota.closed = row["repeats"], row["closed"]
        return quotas

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows from which `from_rows` can create the same quotas."""
        for quota in self._quotas.values():
            yield {
                "name": quota.name,
                "fetched": quota.fetched,
                "earned": quota.earned,
                "repeats": quota.repeats,
                "closed": quota.closed,
            }

    def closed_quota(self, url: str) -> Quota | None:
        """Return the used-up quota of a URL's host or pattern; None if neither is used up."""
        for name in (host(url), url_pattern(url)):
            quota = self._quotas.get(name)
            if quota is not None and quota.closed:
                return quota
        return None

    def count(
        self, url: str, referrer: str | None, *, earns: bool, repeats: bool
    ) -> Iterator[Quota]:
        """Count a fetch for its host and pattern; yield the quotas that close or open.

        The argument ``earns`` is true for a relevant page that is not a duplicate, and ``repeats``
        is true for a duplicate. A relevant page also increases the quotas for the host and pattern
        of the page on which its URL was first found.
        """
        own = (self._quota(host(url)), self._quota(url_pattern(url)))
        for quota in own:
            quota.fetched += 1
            quota.earned += earns
            quota.repeats += repeats
        yield from filter(self._toggle_if_due, own)
        if earns and referrer is not None:
            for name in (host(referrer), url_pattern(referrer)):
                quota = self._quota(name)
                if quota not in own:
                    quota.earned += earns
                    if self._toggle_if_due(quota):
                        yield quota

    def raise_limits(self) -> list[Quota]:
        """Double all quotas, and return the quotas that open."""
        self.multiplier *= 2
        return [quota for quota in self._quotas.values() if self._toggle_if_due(quota)]

    def _quota(self, name: str) -> Quota:
        quota = self._quotas.get(name)
        if quota is None:
            first = FIRST_OF_PATTERN if "/" in name else FIRST_OF_HOST
            quota = self._quotas[name] = Quota(name, first)
        return quota

    def _toggle_if_due(self, quota: Quota) -> bool:
        """Close or open a quota if due; return True if the quota changed."""
        left = quota.balance(self.multiplier)
        is_due = left >= quota.first if quota.closed else left <= 0
        if is_due:
            quota.closed = not quota.closed
        return is_due


class Traps(Part):
    """Counts every fetch, and defers URLs whose host or pattern has used up its quota.

    When all queued URLs are deferred, all quotas are doubled. No URL is lost by quotas, and a
    crawl of a single host fetches in the same order as without quotas.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self.quotas = Quotas()

    def reset(self) -> None:
        """Discard all quotas, and return the deferred URLs to the queue."""
        self.quotas = Quotas()
        self._crawl.frontier.readmit(self._crawl.frontier.deferred().tolist())
        raised = History(self._crawl.store).events(RAISED)
        self._raised = Counter(event.seq for event in raised)

    def restore(self, fetch: RestoredFetch) -> None:
        """Count a fetch of an earlier run; raise all quotas where the earlier run raised them."""
        stored = fetch.stored
        if stored.is_revisit:
            return
        self._count(stored.url, stored.relevance, repeats=fetch.is_duplicate)
        for _ in range(self._raised[stored.seq]):
            self.quotas.raise_limits()

    def before_record(self, visit: PageVisit) -> None:
        """Count a fetch."""
        visit.events += self._count(visit.url_id, visit.relevance, repeats=visit.is_duplicate)

    def readmit(self) -> bool:
        """If all queued URLs are deferred, double all quotas and return True."""
        if not self._crawl.frontier.all_deferred:
            return False
        for quota in self.quotas.raise_limits():
            self._readmit(quota.deferred_ids)
        times = self.quotas.multiplier
        self._crawl.record_event(
            RAISED, f"all quotas are {times} times as high, because all queued URLs were deferred"
        )
        return True

    def _count(self, url_id: int, relevance: float, *, repeats: bool) -> list[tuple[str, str]]:
        events = []
        worth = self._crawl.strategy.page_value(url_id, relevance)
        url, referrer = self._crawl.urls[url_id], self._crawl.urls.referrer(url_id)
        earns = worth > RELEVANT and not repeats
        for quota in self.quotas.count(url, referrer, earns=earns, repeats=repeats):
            if not quota.closed:
                self._readmit(quota.deferred_ids)
            elif not quota.reported:
                quota.reported = True
                events.append(
                    (LIMITED, f"{quota.name}: {quota.description}; its other links are deferred")
                )
        return events

    def admits(self, url_id: int) -> bool:
        """Return False for a URL whose host or pattern has used up its quota."""
        quota = self.quotas.closed_quota(self._crawl.urls[url_id])
        if quota is not None:
            quota.deferred_ids.append(url_id)
        return quota is None

    def _readmit(self, deferred_ids: list[int]) -> None:
        self._crawl.frontier.readmit(deferred_ids)
        deferred_ids.clear()


class NearDuplicates(Part):
    """Finds pages that are near-duplicates of one of the latest 10,000 distinct pages, by MinHash.

    A near-duplicate is judged and its links are queued, but quotas count it as a duplicate.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._index = MinHashIndex(_MAX_PAGES)

    def reset(self) -> None:
        """Discard all pages."""
        self._index = MinHashIndex(_MAX_PAGES)

    def remember(self, url: int, sketch: bytes) -> None:
        """Add a page that another crawl fetched to the near-duplicate index."""
        self._index.find_or_add(url, sketch)

    def restore(self, fetch: RestoredFetch) -> None:
        """Add a page of an earlier run to the near-duplicate index; mark a near-duplicate."""
        stored = fetch.stored
        if is_sketch(stored.signature) and not fetch.is_duplicate:
            near = self._index.find_or_add(stored.url, stored.signature)
            fetch.is_duplicate = near is not None

    def on_judged(self, visit: PageVisit) -> None:
        """Search for the near-duplicate of a page, if the page has enough words."""
        if is_sketch(visit.signature):
            visit.near_duplicate = self._index.find_or_add(visit.url_id, visit.signature)

    def before_record(self, visit: PageVisit) -> None:
        """Record an event if the page is a near-duplicate."""
        if visit.near_duplicate is not None:
            other, alike = visit.near_duplicate
            detail = f"{visit.url}: {alike:.0%} like {self._crawl.urls[other]}"
            visit.events.append((NEAR_DUPLICATE, detail))
