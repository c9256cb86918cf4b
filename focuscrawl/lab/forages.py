"""A site to forage, and what was found there: fetches that brought goals, and pages on the way."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.paths.url_parts import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    Links = Callable[[str], list[str]]


@dataclass(frozen=True)
class Ground:
    """A site to forage: its front door, and what can be reached from there.

    Attributes
    ----------
    goal, site : of what, where
    goals, pages : that links lead to
    """

    goal: str
    site: str
    goals: set[str]
    pages: set[str]

    @property
    def own(self) -> int:
        """How many of the pages are on the registered domain of the front door."""
        return len(at_home(self.site, self.pages))


@dataclass(frozen=True)
class Forage:
    """What a strategy found on the site left out.

    Attributes
    ----------
    goal, site, strategy : of what, where, by whom
    stop : goals a fetch below which it was to end; 0: it was not
    reachable : goals that links lead to from the front door
    pages : pages that links lead to from there
    own : of these, pages on the registered domain of the front door
    fetches : how many there were
    on_the_way : how many of them were goals, or pages by which a goal was found
    found : int64 (n,), the fetches that brought goals, from 1
    """

    goal: str
    site: str
    strategy: str
    stop: float
    reachable: int
    pages: int
    own: int
    fetches: int
    on_the_way: int
    found: NDArray[np.int64]

    def until(self, recall: float) -> int | None:
        """Return the fetches it took to this recall, None if it was not reached."""
        wanted = goals_for(recall, self.reachable)
        return int(self.found[wanted - 1]) if len(self.found) >= wanted else None


def goals_for(recall: float, reachable: int) -> int:
    """Return how many goals make this recall, one at least."""
    return max(int(np.ceil(recall * reachable - 1e-9)), 1)


def foraged(ground: Ground, strategy: str, fetches: Mapping[str, str | None]) -> Forage:
    """Count what fetches brought.

    Parameters
    ----------
    fetches : where each URL fetched was first found, None: nowhere; in the order of the fetches
    """
    found: list[int] = []
    on_the_way: set[str] = set()
    for seq, url in enumerate(fetches, 1):
        if url in ground.goals:
            found.append(seq)
            at: str | None = url
            while at is not None and at not in on_the_way:
                on_the_way.add(at)
                at = fetches.get(at)
    return Forage(
        ground.goal,
        ground.site,
        strategy,
        stop=0.0,
        reachable=len(ground.goals),
        pages=len(ground.pages),
        own=ground.own,
        fetches=len(fetches),
        on_the_way=len(on_the_way),
        found=np.array(found, np.int64),
    )


def at_home(site: str, pages: Iterable[str]) -> set[str]:
    """Return the pages on the registered domain of a front door."""
    home = parts_of(site).domain
    return {url for url in pages if parts_of(url).domain == home}


def reachable(start: str, links: Links) -> set[str]:
    """Return the pages that links lead to from a front door, itself included."""
    return set(clicks({start}, links))


def clicks(starts: Iterable[str], links: Links) -> dict[str, str | None]:
    """Return from which page each page is reached in fewest clicks, nearest pages first."""
    before: dict[str, str | None] = dict.fromkeys(starts)
    waiting = deque(before)
    while waiting:
        page = waiting.popleft()
        for to in links(page):
            if to not in before:
                before[to] = page
                waiting.append(to)
    return before
