"""What keeps a crawl out of traps: limits that must be earned, and pages that say nothing new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.crawl.duplicates import DIGEST
from focuscrawl.crawl.minhash import MinHashIndex, sketch
from focuscrawl.crawl.parts.quotas import Quotas
from focuscrawl.crawl.visit import RELEVANT

if TYPE_CHECKING:
    from collections.abc import Callable

    from focuscrawl.crawl.finding import Finding
    from focuscrawl.crawl.plan import CrawlPlan
    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.frontier import Frontier
    from focuscrawl.page import PageView
    from focuscrawl.strategies import Strategy

#: kinds of events
LIMITED, RAISED, NEAR_DUPLICATE = "limited", "raised", "near-duplicate"


class Traps:
    """Sees every fetch; holds back URLs whose host or pattern has had its share.

    Nothing is lost: what is held back waits until nothing else does; then the limits of all are
    doubled. So a crawl whose links are all on one host goes on as it would without limits.

    Parameters
    ----------
    urls, frontier : the crawl's
    plan : its `limits`: hold back, else nothing is; its `near_duplicates`: look for pages that
        say nearly the same as an earlier one
    strategy : may know better what a page was worth, see `Strategy.worth`
    """

    def __init__(
        self,
        urls: UrlTable,
        frontier: Frontier,
        plan: CrawlPlan,
        strategy: Strategy | None = None,
    ) -> None:
        self._urls = urls
        self._strategy = strategy
        self._frontier = frontier
        self._allowances = Quotas() if plan.limits else None
        self._sketches = MinHashIndex() if plan.near_duplicates else None
        frontier.readmit(frontier.held())  # by accounts that were kept for another topic
        frontier.admits = self._admits if plan.limits else None

    def judged(self, number: int, view: PageView, page: Finding) -> None:
        """Find out whether a page says something new; its sketch goes with its digest."""
        if self._sketches is None or page.digest is None:
            return
        seen = sketch(view.tokens)
        if seen is not None:
            page.digest += seen
            page.resembles = self._sketches.find_or_add(number, seen)

    def visited(self, seq: int, number: int, page: Finding) -> list[tuple[int, str, str]]:
        """Count a fetch; return the events of it, as the store has them."""
        events = []
        if page.resembles is not None:
            other, alike = page.resembles
            detail = f"{self._urls[number]}: {alike:.0%} like {self._urls[other]}"
            events.append((seq, NEAR_DUPLICATE, detail))
        repeats = page.resembles is not None or page.duplicate_of is not None
        return events + self._count(seq, number, page.relevance, repeats=repeats)

    def recall(
        self, seq: int, number: int, relevance: float, digest: bytes | None, *, repeats: bool
    ) -> None:
        """Count a fetch of an earlier run.

        Parameters
        ----------
        digest : as `judged` left it
        repeats : the page is a duplicate, to the byte or by its canonical URL
        """
        near = None
        seen = b"" if digest is None or repeats else digest[DIGEST:]
        if self._sketches is not None and seen:
            near = self._sketches.find_or_add(number, seen)
        self._count(seq, number, relevance, repeats=repeats or near is not None)

    def pop(self, now: float, note: Callable[[str, str], None], *, idle: bool) -> int | None:
        """Take the next URL of the frontier; if all that wait are held back, raise the limits.

        Parameters
        ----------
        note : writes an event down
        idle : nothing is under way that could bring other URLs
        """
        number = self._frontier.pop(now)
        while number is None and idle and self._frontier.all_held:
            note(*self._raise_limits())
            number = self._frontier.pop(now)
        return number

    def _raise_limits(self) -> tuple[str, str]:
        assert self._allowances is not None
        for account in self._allowances.raise_all():
            self._readmit(account.held)
        times = self._allowances.generosity
        return RAISED, f"all limits are {times} times as high: nothing else waits"

    def recall_raise(self) -> None:
        """Raise the limits as an earlier run did."""
        if self._allowances is not None:
            self._allowances.raise_all()

    def _count(
        self, seq: int, number: int, relevance: float, *, repeats: bool
    ) -> list[tuple[int, str, str]]:
        if self._allowances is None:
            return []
        events = []
        if self._strategy is not None:
            relevance = self._strategy.worth(number, relevance)
        earns = relevance > RELEVANT and not repeats
        url, referrer = self._urls[number], self._urls.referrer(number)
        for account in self._allowances.count(url, referrer, earns=earns, repeats=repeats):
            if not account.closed:
                self._readmit(account.held)
            elif not account.told:
                account.told = True
                events.append(
                    (
                        seq,
                        LIMITED,
                        f"{account.name}: {account.in_words}; other links come first",
                    )
                )
        return events

    def _admits(self, number: int) -> bool:
        assert self._allowances is not None
        account = self._allowances.barred(self._urls[number])
        if account is not None:
            account.held.append(number)
        return account is None

    def _readmit(self, held: list[int]) -> None:
        self._frontier.readmit(held)
        held.clear()
