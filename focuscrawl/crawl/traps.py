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
PRIOR = 5.0  # predicted relevance that the expectation for a host or pattern counts as
_DECAY = 0.5 ** (1 / 200)  # of all sums per predicted relevant page, so that 200 halve them
_RISE = 0.75  # share of a higher step at which a discount ends; most steps are not undone soon
_STORED = ("name", "predicted", "gained", "repeated", "halvings")  # between rounds
_MAX_PAGES = 10_000  # in the index of near-duplicates; 30 MB


@dataclass(slots=True)
class Group:
    """The last fetches of one host or one URL pattern, which the attribute ``name`` identifies.

    All sums are weighted: older fetches count less.
    """

    name: str
    predicted: float = 0.0  # sum of the relevance that scores predicted
    gained: float = 0.0  # sum of the relevance of new pages
    repeated: float = 0.0  # the part of `predicted` that repeats were fetched for
    halvings: int = 0  # how often the scores of URLs are halved
    reported: bool = False  # True if the event was recorded
    discounted: set[int] = field(default_factory=set)  # URLs whose scores are halved

    def add(self, predicted: float, gained: float, repeated: float) -> None:
        """Add a fetch, or correct the last fetch if the argument ``predicted`` is 0."""
        decay = _DECAY**predicted
        self.predicted = decay * self.predicted + predicted
        self.gained = decay * self.gained + gained
        self.repeated = decay * self.repeated + repeated

    @property
    def gain(self) -> float:
        """Share of the predicted relevance that new pages had."""
        return self.gained / self.predicted if self.predicted else 1.0

    def update(self, expected: float) -> int:
        """Compute `halvings` from the fetches, and return the difference from before.

        Parameters
        ----------
        expected : float
            Expected share of the predicted relevance before the first fetch.
        """
        share = (PRIOR * expected + self.gained) / (PRIOR + self.predicted)
        before = self.halvings
        while share <= 0.5 ** (self.halvings + 1):
            self.halvings += 1
        while self.halvings and share >= _RISE * 0.5 ** (self.halvings - 1):
            self.halvings -= 1
        return self.halvings - before

    def describe(self) -> str:
        """Return the reason for a discount as text."""
        repeats = self.repeated / self.predicted
        if repeats >= 0.5:
            return f"{repeats:.0%} of the last fetches of {self.name} were repeats"
        text = f"the last fetches of {self.name} had {self.gain:.0%} of the predicted relevance"
        return f"{text}, and {repeats:.0%} were repeats" if repeats >= 0.005 else text


class Discounts:
    """Discounts for URLs whose host or pattern yielded less relevance than the scores predicted.

    A score predicts a relevance. A new page brings its relevance, and a repeat brings nothing. The
    yield of a host is the relevance brought, divided by the relevance predicted, with a prior of
    `PRIOR` correct predictions. The yield of a pattern is computed as if `PRIOR` earlier
    predictions had had the yield of the host. When a yield falls to a half, a quarter and so on,
    the scores are halved once, twice and so on.

    Discounts depend only on the order of the fetches.
    """

    def __init__(self) -> None:
        self._hosts: dict[str, Group] = {}
        self._patterns: dict[str, dict[str, Group]] = {}  # by host
        self._redirects: dict[str, float] = {}  # without a fetched target: predicted relevance

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
        """Yield the `Group` of each host, and then the `Group` of each URL pattern."""
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
        own = pattern.predicted >= 1.0 and pattern.gain <= of_host.gain
        return (pattern if own else of_host).describe()

    def count(
        self,
        url: str,
        referrer: str | None,
        *,
        predicted: float | None,
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
        predicted : float or None
            Score of the URL; None for start pages and targets of redirects.
        moved, repeats : bool
            True for a redirect; True for a duplicate or near-duplicate.
        """
        expected = 0.0 if predicted is None else min(max(predicted, 0.0), 1.0)
        origin = referrer if referrer in self._redirects else None
        if origin is not None:
            expected = self._redirects.pop(origin)
        if moved:
            self._redirects[url] = expected
        if repeats or moved:
            return self._add(url, expected, 0.0, expected)
        gained = relevance if expected else 0.0
        changed = [] if origin is None else self._add(origin, 0.0, gained, -expected)
        return changed + self._add(url, expected, gained, 0.0)

    def _add(
        self, url: str, predicted: float, gained: float, repeated: float
    ) -> list[tuple[Group, int]]:
        groups = of_host, pattern = self._groups(host(url), url_pattern(url))
        for group in groups:
            group.add(predicted, gained, repeated)
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
        crawl, expects = self._crawl, self._crawl.strategy.expects_relevance
        changed = self.discounts.count(
            crawl.urls[url_id],
            crawl.urls.referrer(url_id),
            predicted=fetch.score if expects else 1.0,
            relevance=fetch.relevance if expects else 1.0,
            moved=is_redirect(fetch.status, fetch.error),
            repeats=repeats,
        )
        for group, change in changed:
            if change < 0:
                self._undo(group)
        new = [group for group, change in changed if change > 0 and group.gain < 0.5]
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
        """Add a page of an earlier run to the index, or mark the page as a near-duplicate."""
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
