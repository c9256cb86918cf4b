"""Protection from crawler traps: discounts of hosts and URL patterns, and near-duplicates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl.crawl.duplicates import MinHashIndex, is_sketch
from focuscrawl.crawl.part import Part
from focuscrawl.crawl.state import is_redirect
from focuscrawl.crawl.url_table import url_pattern
from focuscrawl.foundation.urls import host
from focuscrawl.frontier import LAST
from focuscrawl.page.documents import URL_LIST_KINDS
from focuscrawl.store.history import DIGEST

if TYPE_CHECKING:
    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit
    from focuscrawl.store.history import StoredFetch


#: kinds of events
DISCOUNTED, NEAR_DUPLICATE = "discounted", "near-duplicate"
PRIOR = 5.0  # predicted relevance that the expectation counts as if all scores are 1
NEW = 2.0  # fetches that the expected share of new pages counts as
_MOST = 0.5  # share of a prior that one pattern counts for its host, so that one cannot halve it
_DECAY = 0.5 ** (1 / 200)  # of all sums per fetch, so that 200 fetches halve them
_RISE = 0.75  # share of a higher step at which a discount ends; most steps are not undone soon
_MAX_REPEATS = 18  # in a row, after which 1 new page in 20 is expected (rule of succession)
_MAX_PAGES = 10_000  # in the index of near-duplicates; 30 MB


class Sums(NamedTuple):
    """Sums over fetches of URLs, in which older fetches count less.

    Attributes
    ----------
    fetched : number of fetches
    repeated : number of fetches that were repeats
    predicted : relevance that the scores predicted for the new pages
    gained : relevance of the new pages
    """

    fetched: float = 0.0
    repeated: float = 0.0
    predicted: float = 0.0
    gained: float = 0.0

    def plus(self, other: Sums, factor: float = 1.0) -> Sums:
        """Return these sums plus `factor` times the other sums."""
        return Sums(*(own + factor * more for own, more in zip(self, other, strict=True)))

    def after(self, fetch: Sums) -> Sums:
        """Return the sums after a further fetch, or after a correction of the last fetch."""
        return fetch.plus(self, _DECAY**fetch.fetched)

    def limited(self) -> Sums:
        """Return the part of the sums that counts for the host of a URL pattern."""
        fetches = min(_MOST * NEW / self.fetched, 1.0) if self.fetched else 0.0
        pages = min(_MOST * PRIOR / self.predicted, 1.0) if self.predicted else 0.0
        return Sums(
            fetches * self.fetched,
            fetches * self.repeated,
            pages * self.predicted,
            pages * self.gained,
        )

    def rates(self, novelty: float = 1.0, accuracy: float = 1.0) -> tuple[float, float]:
        """Estimate the share of new pages, and the relevance of new pages per predicted relevance.

        Parameters
        ----------
        novelty, accuracy : float
            Expected rates before the first fetch.
        """
        new = self.fetched - self.repeated
        share = (NEW * novelty + new) / (NEW + self.fetched)
        score = min(max(self.predicted / new, 0.0), 1.0) if new > 0.0 else 1.0
        prior = PRIOR * math.sqrt(score)
        if not prior:
            return share, accuracy
        gained = (prior * accuracy + self.gained) / (prior + self.predicted)
        return share, min(gained, 1.0)

    @property
    def repeats(self) -> float:
        """Share of repeats among the fetches."""
        return self.repeated / self.fetched if self.fetched else 0.0

    @property
    def gain(self) -> float:
        """Share of the predicted relevance that the new pages had."""
        return self.gained / self.predicted if self.predicted else 1.0


@dataclass(slots=True)
class Group:
    """The fetches of one host or one URL pattern, which the attribute ``name`` identifies."""

    name: str
    sums: Sums = field(default_factory=Sums)  # of a host: over the limited sums of its patterns
    in_a_row: int = 0  # repeats since the last new page of a pattern
    halvings: int = 0  # how often the scores of URLs are halved
    reported: bool = False  # True if the event was recorded
    discounted: set[int] = field(default_factory=set)  # URLs whose scores are halved

    def update(self, novelty: float, accuracy: float) -> int:
        """Compute `halvings` from the rates of the group; return the difference from before."""
        share = 0.5**LAST if self.comes_last else novelty * accuracy
        before = self.halvings
        while share <= 0.5 ** (self.halvings + 1):
            self.halvings += 1
        while self.halvings and share >= _RISE * 0.5 ** (self.halvings - 1):
            self.halvings -= 1
        return self.halvings - before

    @property
    def comes_last(self) -> bool:
        """True if so many repeats came in a row that all other URLs are fetched first."""
        return self.in_a_row >= _MAX_REPEATS

    @property
    def brought(self) -> float:
        """Share of new pages, times the share of the predicted relevance that new pages had."""
        return (1.0 - self.sums.repeats) * self.sums.gain

    def describe(self) -> str:
        """Return the reason for a discount as text."""
        repeats = self.sums.repeats
        if self.comes_last:
            return f"the last {self.in_a_row} fetches of {self.name} were repeats"
        if repeats >= 0.5:
            text = f"{repeats:.0%} of the last fetches of {self.name} were repeats"
        else:
            gain = f"{self.sums.gain:.0%} of the predicted relevance"
            text = f"the last new pages of {self.name} had {gain}"
            if repeats >= 0.005:
                text += f", and {repeats:.0%} of the last fetches were repeats"
        return text if "/" in self.name else f"{text} (all URL patterns count alike)"


class Discounts:
    """Discounts for URLs whose host or pattern yielded less relevance than the scores predicted.

    The yield of a URL pattern is the share of new pages among its fetches, times the relevance of
    the new pages per relevance that their scores predicted. Both rates are estimated with a prior,
    the rates of the other patterns of the host. In the yield of a host, all patterns have a
    limited weight, so that one pattern alone cannot lower the scores of its host. When a yield
    falls to a half, a quarter and so on, the scores are halved once, twice and so on.

    The prior of the second rate counts as `PRIOR`·√s predicted relevance, where s is the mean
    score. So about 5 irrelevant pages with the score 1, or 50 with the score 0.01, halve the
    scores. Scores near 0 are inexact, and their errors cause no discount.

    After `_MAX_REPEATS` repeats of a pattern in a row, all other URLs come first, until the
    pattern brings a new page.

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
            sums = Sums(*(row[name] for name in Sums._fields))
            group = Group(row["name"], sums, row["in_a_row"], row["halvings"])
            of_host = discounts._patterns.setdefault(host(f"//{group.name}"), {})
            if "/" in group.name:
                of_host[group.name] = group
            else:
                discounts._hosts[group.name] = group
        return discounts

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows from which `from_rows` can restore the discounts."""
        for group in self.groups():
            counts = {"in_a_row": group.in_a_row, "halvings": group.halvings}
            yield {"name": group.name, **group.sums._asdict(), **counts}

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
        own = pattern.sums.fetched >= 1.0 and pattern.brought <= of_host.brought
        return (pattern if own or pattern.comes_last else of_host).describe()

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

        Until the target of a redirect is fetched, the redirect counts as a repeated page. After
        that, the redirect counts in the same way as the target.

        Parameters
        ----------
        referrer : str or None
            Page on which the URL was found.
        predicted : float or None
            Score of the URL; None for start pages and targets of redirects.
        moved, repeats : bool
            True for a redirect; True for a duplicate or near-duplicate.
        """
        origin = referrer if referrer in self._redirects else None
        if origin is not None:
            predicted = self._redirects.pop(origin)
        if predicted is None:
            return []
        predicted = min(max(predicted, 0.0), 1.0)
        if moved:
            self._redirects[url] = predicted
        if repeats or moved:
            return self._add(url, Sums(fetched=1.0, repeated=1.0))
        changed: list[tuple[Group, int]] = []
        if origin is not None:
            changed = self._add(origin, Sums(0.0, -1.0, predicted, relevance))
        return changed + self._add(url, Sums(1.0, 0.0, predicted, relevance))

    def _add(self, url: str, fetch: Sums) -> list[tuple[Group, int]]:
        of_host, pattern = self._groups(host(url), url_pattern(url))
        others = of_host.sums.plus(pattern.sums.limited(), -1.0)
        pattern.sums = pattern.sums.after(fetch)
        pattern.in_a_row = pattern.in_a_row + 1 if fetch.repeated > 0.0 else 0
        of_host.sums = others.plus(pattern.sums.limited())
        changed = [(of_host, of_host.update(*of_host.sums.rates()))]
        patterns = self._patterns[of_host.name].values() if changed[0][1] else [pattern]
        for each in patterns:
            others = of_host.sums.plus(each.sums.limited(), -1.0)
            changed.append((each, each.update(*each.sums.rates(*others.rates()))))
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
        lower = [group for group, change in changed if change > 0]
        new = [group for group in lower if group.brought < 0.5 or group.comes_last]
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
    """Finds pages that are near-duplicates of one of the latest 10,000 distinct pages.

    Pages with few words are near-duplicates if their URLs differ only in the query, and their
    words only in numbers. Other pages are compared by MinHash. A near-duplicate is judged and its
    links are queued, but it counts as a repeat for discounts.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._index = MinHashIndex(_MAX_PAGES)
        self._short: dict[tuple[str, bytes], int] = {}  # URL ids by path and words

    def reset(self) -> None:
        """Discard all pages."""
        self._index = MinHashIndex(_MAX_PAGES)
        self._short.clear()

    def find_or_add(self, url_id: int, signature: bytes) -> tuple[int, float] | None:
        """Return a page's earlier near-duplicate; if there is none, add the page.

        Returns
        -------
        tuple of (int, float) or None
            URL id of the earlier page, and the resemblance to that page.
        """
        if is_sketch(signature):
            return self._index.find_or_add(url_id, signature)
        path, arguments, _ = self._crawl.urls[url_id].partition("?")
        words = signature[DIGEST:]
        if not arguments or not words:
            return None
        first = self._short.setdefault((path, words), url_id)
        if len(self._short) > _MAX_PAGES:
            del self._short[next(iter(self._short))]
        return None if first == url_id else (first, 1.0)

    def restore(self, fetch: RestoredFetch) -> None:
        """Add a page of an earlier run to the index, or mark the page as a near-duplicate."""
        stored = fetch.stored
        if not fetch.is_duplicate:
            near = self.find_or_add(stored.url, stored.signature)
            fetch.is_duplicate = near is not None

    def on_judged(self, visit: PageVisit) -> None:
        """Search for the near-duplicate of a page."""
        visit.near_duplicate = self.find_or_add(visit.url_id, visit.signature)

    def before_record(self, visit: PageVisit) -> None:
        """Record an event if the page is a near-duplicate."""
        if visit.near_duplicate is not None:
            other, alike = visit.near_duplicate
            detail = f"{visit.url}: {alike:.0%} like {self._crawl.urls[other]}"
            visit.events.append((NEAR_DUPLICATE, detail))
