"""Recall certified by target pages: relevant pages that the user knows but the crawl does not.

Target pages are kept out of the start pages and of the critic's examples, so a crawl can find a
target page only by links. If the target pages are a random sample of the relevant pages, the
number of target pages found gives a lower bound of the recall.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: with fewer target pages, no recall is certified
MIN_TARGETS = 14
_ERROR = 0.05  # highest probability that the recall is below the bound


@lru_cache(maxsize=4096)  # a stop rule asks before each fetch
def certified_recall(found: int, targets: int) -> float:
    """Return the lower bound of the recall with 95 % confidence (Clopper and Pearson, 1934).

    Parameters
    ----------
    found, targets : int
        Number of target pages found, and of all target pages.

    Returns
    -------
    float
        0.0 for fewer than 14 target pages.
    """
    from scipy.special import betaincinv  # noqa: PLC0415 - slow to import, few crawls need it

    if not found or targets < MIN_TARGETS:
        return 0.0
    return float(betaincinv(found, targets - found + 1, _ERROR))


def targets_needed(targets: int, recall: float) -> int | None:
    """Return how many target pages must be found to certify a recall.

    The result is None if even finding all target pages would not suffice.
    """
    enough = (n for n in range(1, targets + 1) if certified_recall(n, targets) >= recall)
    return next(enough, None)


def split_examples(urls: Sequence[str], random_state: int = 0) -> tuple[list[str], list[str]]:
    """Split known relevant pages into examples and target pages.

    Of 21 or more pages, two thirds become target pages. Of 14 to 20 pages, 14 become target pages.
    With fewer than 14 pages, all pages are examples.

    Returns
    -------
    tuple of list of str and list of str
        Examples, and target pages drawn at random, both in the original order.
    """
    count = max(MIN_TARGETS, 2 * len(urls) // 3) if len(urls) >= MIN_TARGETS else 0
    held = {*Random(random_state).sample(urls, count)}
    return [url for url in urls if url not in held], [url for url in urls if url in held]


@dataclass(frozen=True)
class TargetCounts:
    """Number of target pages of a crawl by state."""

    targets: int  #: all target pages
    fetched: int  #: target pages that the crawl has fetched
    met: int  #: target pages that were fetched, or to which a fetched page links
    relevant: int | None = None  #: fetched target pages with relevance above 0.5, if counted

    @property
    def recall(self) -> float:
        """Lower bound of the recall with 95 % confidence, computed from the target pages."""
        return certified_recall(self.fetched, self.targets)

    def short(self) -> str:
        """Return the counts as a short text for a progress bar."""
        return f"targets {self.fetched}/{self.targets}"

    def describe(self) -> str:
        """Return a phrase with the counts and the certified recall, for use in a sentence."""
        text = f"{self.fetched:,} of {self.targets:,} target pages found"
        if self.relevant is not None and self.relevant < self.fetched:
            text += f" ({self.relevant:,} judged relevant)"
        if self.met > self.fetched:
            text += f", {self.met - self.fetched:,} more known by links"
        if self.targets < MIN_TARGETS:
            return f"{text}; no recall is certified with fewer than {MIN_TARGETS} target pages"
        return f"{text}; recall at least {_percent(self.recall)} with 95 % confidence"


def _percent(share: float) -> str:
    return f"{int(100 * share)} %"  # rounded down, because it is a lower bound
