"""Paths out of a web whose pages are labelled: what a person would have clicked.

A goal is reached by one of the shortest ways, and of these by the one whose pages have the most
goals behind them: a list of people rather than a colleague's page. Fails leave these ways by a
link to a page with no goal behind it, and some go on from there.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.paths.paths import Path
from focuscrawl.paths.states import FAIL, GOAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

    Links = Callable[[str], list[str]]

_STRAY = 3  # most clicks a fail goes on behind where it left the way


@dataclass(frozen=True)
class Sampling:
    """How many paths are taken of a site.

    Attributes
    ----------
    goals : paths to goals, at most
    fails : paths to fails for each of these
    """

    goals: int = 200
    fails: float = 3.0


def extract_paths(
    start: str,
    links: Links,
    goals: AbstractSet[str],
    labels: Mapping[str, str],
    *,
    sampling: Sampling,
    random_state: int,
) -> list[Path]:
    """Return paths from `start` to goals, then to fails.

    Parameters
    ----------
    links : gives the pages that a page links to, in document order
    goals : pages looked for
    labels : milestones of pages; pages it lacks stay unlabelled, and those labelled
        ``goal`` or ``fail`` are what `goals` makes them
    """
    rng = np.random.default_rng(random_state)
    ways = _Ways(start, links, goals)
    reached = [goal for goal in ways.order if goal in goals and goal != start]
    if len(reached) > sampling.goals:
        chosen = rng.choice(len(reached), sampling.goals, replace=False)
        reached = [reached[i] for i in np.sort(chosen).tolist()]
    found = [ways.to(goal) for goal in reached]
    walks = found + _fails(ways, found, goals, round(sampling.fails * len(found)), rng)
    return [_labelled(walk, goals, ways.leading, labels) for walk in walks]


class _Ways:
    """The shortest ways from a start, and which of them lead to goals."""

    def __init__(self, start: str, links: Links, goals: AbstractSet[str]) -> None:
        self.links = links
        self.depth = {start: 0}
        self.order = [start]
        parents: dict[str, list[str]] = {start: []}
        waiting = deque([start])
        while waiting:
            page = waiting.popleft()
            for target in dict.fromkeys(links(page)):
                if target not in self.depth:
                    self.depth[target] = self.depth[page] + 1
                    parents[target] = []
                    self.order.append(target)
                    waiting.append(target)
                if self.depth[target] == self.depth[page] + 1:
                    parents[target].append(page)
        # of the parents on shortest ways the one with the most goals among its links
        listed = {page: sum(target in goals for target in set(links(page))) for page in self.order}
        self.parent = {
            page: max(of, key=lambda each: (listed[each], -self.depth[each]))
            for page, of in parents.items()
            if of
        }
        self.leading = set(goals & self.depth.keys())
        for page in reversed(self.order):
            if page in self.leading:
                self.leading.update(parents[page])

    def to(self, page: str) -> list[str]:
        """Return the way from the start to a page."""
        way = [page]
        while way[-1] in self.parent:
            way.append(self.parent[way[-1]])
        return way[::-1]


def _fails(
    ways: _Ways,
    found: list[list[str]],
    goals: AbstractSet[str],
    count: int,
    rng: np.random.Generator,
) -> list[list[str]]:
    """Return walks that leave the ways found, each by a link of its own as long as there are."""
    prefixes: dict[str, list[str]] = {}
    for way in found:
        for i, page in enumerate(way):
            prefixes.setdefault(page, way[: i + 1])
    exits = [
        [*prefix, target]
        for page, prefix in prefixes.items()
        for target in dict.fromkeys(ways.links(page))
        if target not in ways.leading and target not in prefix and target not in prefixes
    ]
    if not exits:
        return []
    walks = [exits[i] for i in rng.permutation(len(exits)).tolist()[:count]]
    while len(walks) < count:
        walk = list(exits[int(rng.integers(len(exits)))])
        for _ in range(int(rng.integers(1, _STRAY + 1))):
            onward = [
                target
                for target in dict.fromkeys(ways.links(walk[-1]))
                if target not in walk and target not in goals and target not in ways.leading
            ]
            if not onward:
                break
            walk.append(onward[int(rng.integers(len(onward)))])
        walks.append(walk)
    return walks


def _labelled(
    walk: list[str], goals: AbstractSet[str], leading: AbstractSet[str], labels: Mapping[str, str]
) -> Path:
    given: list[str | None] = []
    for page in walk:
        label = labels.get(page)
        if page in goals:
            given.append(GOAL)
        elif page in leading:
            given.append(None if label in {GOAL, FAIL} else label)
        else:
            given.append(FAIL)  # whatever it is: it leads nowhere
    return Path(tuple(walk), tuple(given))
