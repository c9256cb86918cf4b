"""A host, and a pattern of URLs, must earn its fetches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl.url_patterns import pattern
from focuscrawl.foundation.urls import host

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FIRST_OF_HOST = 100  # fetches that need not have been earned
FIRST_OF_PATTERN = 30
EARNED = 20  # fetches for each relevant page more than there are repeats


@dataclass(slots=True)
class Quota:
    """Fetches and earnings of one host, or of one pattern.

    Attributes
    ----------
    name : the host or the pattern
    first : fetches that need not have been earned
    fetched : fetches, whatever came of them
    earned : its relevant pages that say something new, and those first found on its pages
    repeats : its duplicates, to the byte or nearly
    closed : no more fetches for now
    told : it was closed before
    held : numbers of the URLs that wait for it to open
    """

    name: str
    first: int
    fetched: int = 0
    earned: int = 0
    repeats: int = 0
    closed: bool = False
    told: bool = False
    held: list[int] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """What it is a quota of: ``host`` or ``pattern``."""
        return "pattern" if "/" in self.name else "host"

    @property
    def in_words(self) -> str:
        """What it has brought."""
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
    pages found on it, or when the limits of all are raised. Everything here is a function of the
    fetches in their order and of when limits were raised.

    Attributes
    ----------
    generosity : what all limits are multiplied by; doubled by each raise
    """

    def __init__(self) -> None:
        self.generosity = 1
        self._quotas: dict[str, Quota] = {}

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]], generosity: int) -> Quotas:
        """Return the limits that `rows` were of, with nothing held."""
        quotas = cls()
        quotas.generosity = generosity
        for row in rows:
            quota = quotas._quota(row["name"])
            quota.fetched, quota.earned = row["fetched"], row["earned"]
            quota.repeats, quota.closed = row["repeats"], row["closed"]
        return quotas

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield what `of` needs to go on with these limits."""
        for quota in self._quotas.values():
            yield {
                "name": quota.name,
                "fetched": quota.fetched,
                "earned": quota.earned,
                "repeats": quota.repeats,
                "closed": quota.closed,
            }

    def barred(self, url: str) -> Quota | None:
        """Return the quota that keeps `url` from being fetched now; None if it may be."""
        for name in (host(url), pattern(url)):
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
        earns : it is a relevant page that says something new
        repeats : it is a duplicate, to the byte or nearly

        Yields
        ------
        Accounts that close or open by it
        """
        own = (self._quota(host(url)), self._quota(pattern(url)))
        for quota in own:
            quota.fetched += 1
            quota.earned += earns
            quota.repeats += repeats
        yield from filter(self._turned, own)
        if earns and referrer is not None:
            for name in (host(referrer), pattern(referrer)):
                quota = self._quota(name)
                if quota not in own:
                    quota.earned += earns
                    if self._turned(quota):
                        yield quota

    def raise_all(self) -> list[Quota]:
        """Double every limit; return the quotas that open by it."""
        self.generosity *= 2
        return [quota for quota in self._quotas.values() if self._turned(quota)]

    def _quota(self, name: str) -> Quota:
        quota = self._quotas.get(name)
        if quota is None:
            first = FIRST_OF_PATTERN if "/" in name else FIRST_OF_HOST
            quota = self._quotas[name] = Quota(name, first)
        return quota

    def _turned(self, quota: Quota) -> bool:
        """Close or open a quota if it is time; tell whether it was."""
        left = quota.balance(self.generosity)
        turn = left >= quota.first if quota.closed else left <= 0
        if turn:
            quota.closed = not quota.closed
        return turn
