"""Protection from crawler traps: discounts of hosts and URL patterns, and near-duplicates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl.duplicates import MinHashIndex, is_sketch
from focuscrawl.crawl.part import Part
from focuscrawl.crawl.state import is_redirect
from focuscrawl.crawl.url_table import url_pattern
from focuscrawl.foundation.urls import host
from focuscrawl.page.documents import URL_LIST_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit
    from focuscrawl.store.history import StoredFetch


#: kinds of events
DISCOUNTED, NEAR_DUPLICATE = "discounted", "near-duplicate"
PRIOR = 5.0  # fetches that the expectation for a host or pattern counts as
_DECAY = 0.5 ** (1 / 200)  # of the weight of a fetch by each further fetch; 200 fetches halve it
_RISE = 0.75  # share of a higher step at which a discount ends; most steps are not undone soon
_MIN_SHOWN = 0.005  # smallest share in the reason for a discount
_STORED = ("name", "fetches", "repeats", "misses", "halvings")  # between rounds
_MAX_PAGES = 10_000  # in the index of near-duplicates; 30 MB


@dataclass(slots=True)
class Group:
    """The last fetches of one host or one URL pattern, which the attribute ``name`` identifies.

    All sums are weighted. The weight of a fetch is 1, and decreases with each further fetch.
    """

    name: str
    fetches: float = 0.0
    repeats: float = 0.0  # duplicates, near-duplicates, and redirects without a new page
    misses: float = 0.0  # relevance that scores promised and pages lacked
    halvings: int = 0  # how often the scores of URLs are halved
    reported: bool = False  # True if the event was recorded
    discounted: set[int] = field(default_factory=set)  # URLs whose scores are halved

    def add(self, fetches: int, repeats: int, misses: float) -> None:
        """Add a fetch, or correct the last fetch if the argument ``fetches`` is 0."""
        decay = _DECAY**fetches
        self.fetches = decay * self.fetches + fetches
        self.repeats = decay * self.repeats + repeats
        self.misses = decay * self.misses + misses

    @property
    def lost(self) -> float:
        """Share of the fetches that is lost."""
        return (self.repeats + self.misses) / self.fetches if self.fetches else 0.0

    def update(self, expected: float) -> int:
        """Compute `halvings` from the fetches, and return the difference from before.

        Parameters
        ----------
        expected : float
            Expected share of the promised, new relevance before the first fetch.
        """
        kept = self.fetches - self.repeats - self.misses
        share = (PRIOR * expected + kept) / (PRIOR + self.fetches)
        before = self.halvings
        while share <= 0.5 ** (self.halvings + 1):
            self.halvings += 1
        while self.halvings and share >= _RISE * 0.5 ** (self.halvings - 1):
            self.halvings -= 1
        return self.halvings - before

    def describe(self) -> str:
        """Return the reason for a discount as text."""
        repeats, misses = self.repeats / self.fetches, self.misses / self.fetches
        words = [f"{repeats:.0%} of the last fetches of {self.name} were repeats"]
        if misses >= _MIN_SHOWN:
            of = "they" if repeats >= _MIN_SHOWN else f"the last fetches of {self.name}"
            words.append(f"{of} had {misses:.2f} less relevance than their scores on average")
        return " and ".join(words if repeats >= _MIN_SHOWN else words[1:])


class Discounts:
    """Lowers the scores of URLs if the last fetches of their host or URL pattern were worth less.

    The loss of a fetch is 1 for a repeat. For a new page, the loss is the amount by which the
    score of the URL exceeds the relevance of the page. The yield of a host is 1 minus the mean
    loss of its fetches, with `PRIOR` additional imaginary fetches without loss. For a URL pattern,
    the `PRIOR` imaginary fetches have the yield of the host. When a yield falls to a half, a
    quarter and so on, the scores are halved once, twice and so on.

    Discounts depend only on the order of the fetches.
    """

    def __init__(self) -> None:
        self._hosts: dict[str, Group] = {}
        self._patterns: dict[str, dict[str, Group]] = {}  # by host
        self._promises: dict[str, float] = {}  # of redirects whose target was not fetched yet

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Discounts:
        """Restore discounts from `rows`."""
        discounts = cls()
        for row in rows:
            group = Group(**row)
            of_host = discounts._patterns.setdefault(host(f"//{group.name}"), {})
            if "/" in group.name:
                of_host[group.name] = group
            else:
                discounts._hosts[group.name] = group
        return discounts

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows from which `from_rows` can restore the discounts."""
        for group in self.groups():
            yield {name: getattr(group, name) for name in _STORED}

    def groups(self) -> Iterator[Group]:
        """Yield the groups of all hosts, then those of all patterns."""
        yield from self._hosts.values()
        for patterns in self._patterns.values():
            yield from patterns.values()

    def halvings(self, url: str) -> int:
        """Return how often the score of a URL is halved."""
        name = host(url)
        if name not in self._hosts:
            return 0
        pattern = self._patterns[name].get(url_pattern(url))
        return self._hosts[name].halvings if pattern is None else pattern.halvings

    def pattern(self, url: str) -> Group:
        """Return the group of the pattern of a URL."""
        return self._groups(host(url), url_pattern(url))[1]

    def reason(self, url: str) -> str | None:
        """Return the reason for the discount of a URL as text; None without a discount."""
        if not self.halvings(url):
            return None
        of_host, pattern = self._groups(host(url), url_pattern(url))
        return max(pattern, of_host, key=lambda group: group.lost).describe()

    def count(
        self,
        url: str,
        referrer: str | None,
        *,
        score: float | None,
        relevance: float,
        moved: bool,
        repeats: bool,
    ) -> list[tuple[Group, int]]:
        """Count a fetch; return changed groups, hosts first, and the change of their halvings.

        A redirect counts as a repeat until its target was fetched; then the redirect counts like
        its target.

        Parameters
        ----------
        referrer : str or None
            Page on which the URL was found.
        score : float or None
            Relevance that was expected of the page; None for no expectation.
        moved, repeats : bool
            True for a redirect; True for a duplicate or near-duplicate.
        """
        promise = 0.0 if score is None else min(max(score, 0.0), 1.0)
        origin = referrer if referrer in self._promises else None
        if origin is not None:
            promise = self._promises.pop(origin)
        if moved:
            self._promises[url] = promise
        is_repeat = repeats or moved
        miss = 0.0 if is_repeat else max(0.0, promise - relevance)
        changed = []
        if origin is not None and not is_repeat:
            changed += self._add(origin, 0, -1, miss)
        return changed + self._add(url, 1, int(is_repeat), miss)

    def _add(self, url: str, fetches: int, repeats: int, misses: float) -> list[tuple[Group, int]]:
        groups = of_host, pattern = self._groups(host(url), url_pattern(url))
        for group in groups:
            group.add(fetches, repeats, misses)
        changed = [(of_host, of_host.update(1.0))]
        expected = 0.5**of_host.halvings
        patterns = self._patterns[of_host.name].values() if changed[0][1] else [pattern]
        changed += [(each, each.update(expected)) for each in patterns]
        return [(group, change) for group, change in changed if change]

    def _groups(self, name: str, pattern: str) -> tuple[Group, Group]:
        of_host = self._hosts.get(name)
        if of_host is None:
            of_host = self._hosts[name] = Group(name)
            self._patterns[name] = {}
        patterns = self._patterns[name]
        if pattern not in patterns:
            patterns[pattern] = Group(pattern, halvings=of_host.halvings)
        return of_host, patterns[pattern]


class Traps(Part):
    """Lowers the scores of URLs whose hosts or patterns bring repeats or irrelevant pages.

    The crawl applies a discount when a URL would be fetched next. So no URL is lost, and a crawl
    of a single pattern has the same order as without discounts.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self.discounts = Discounts()

    def reset(self) -> None:
        """Discard all discounts."""
        for group in self.discounts.groups():
            self._undo(group)
        self.discounts = Discounts()

    def restore(self, fetch: RestoredFetch) -> None:
        """Count a fetch of an earlier run."""
        if not fetch.stored.is_revisit:
            self._count(fetch.stored, fetch.stored.url, repeats=fetch.is_duplicate)

    def before_record(self, visit: PageVisit) -> None:
        """Count a fetch."""
        visit.events += self._count(visit, visit.url_id, repeats=visit.is_duplicate)

    def _count(
        self, fetch: StoredFetch | PageVisit, url_id: int, *, repeats: bool
    ) -> list[tuple[str, str]]:
        if fetch.error in URL_LIST_KINDS:
            return []
        crawl = self._crawl
        changed = self.discounts.count(
            crawl.urls[url_id],
            crawl.urls.referrer(url_id),
            score=fetch.score if crawl.strategy.expects_relevance else None,
            relevance=fetch.relevance,
            moved=is_redirect(fetch.status, fetch.error),
            repeats=repeats,
        )
        for group, change in changed:
            if change < 0:
                self._undo(group)
        new = [group for group, change in changed if change > 0 and group.lost > 0.5]
        events = [(DISCOUNTED, group.describe()) for group in new if not group.reported]
        for group in new:
            group.reported = True
        return events

    def halvings(self, url_id: int) -> int:
        """Return how often the score of a URL is halved."""
        url = self._crawl.urls[url_id]
        halvings = self.discounts.halvings(url)
        if halvings:
            self.discounts.pattern(url).discounted.add(url_id)
        return halvings

    def _undo(self, group: Group) -> None:
        """Restore the scores of the URLs of a group; the crawl lowers them again when due."""
        for url_id in group.discounted:
            self._crawl.frontier.discount(url_id, 0)
        group.discounted.clear()


class NearDuplicates(Part):
    """Finds pages that are near-duplicates of one of the latest 10,000 distinct pages, by MinHash.

    A near-duplicate is judged and its links are queued, but it counts as a repeat for discounts.
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
