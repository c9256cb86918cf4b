"""Training paths from a web whose pages are labelled: what a person would have clicked.

A person who wants all goals looks for a list of them. So the goals are shared out among the pages
that link to them: first to the page that has the most for the clicks it takes to get there, and so
on with those that are left. Fails leave these ways for pages that link to no goal, and some go on.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.paths.site_path import SitePath
from focuscrawl.paths.states import FAIL, GOAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

    Links = Callable[[str], list[str]]

_STRAY = 3  # most clicks a fail goes on behind where it left the way


@dataclass(frozen=True)
class PathSampling:
    """How many training paths are taken of a site.

    Attributes
    ----------
    goals : paths to goals, at most
    fails : paths to fails for each of these
    """

    goals: int = 60
    fails: float = 3.0


def extract_paths(
    start: str,
    links: Links,
    goals: AbstractSet[str],
    labels: Mapping[str, str],
    *,
    sampling: PathSampling,
    random_state: int,
) -> list[SitePath]:
    """Return paths from `start` to goals, then to fails.

    Parameters
    ----------
    links : gives the pages that a page links to, each once, in document order
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
    walks = found + _fails(ways, found, round(sampling.fails * len(found)), rng)
    return [_labelled(walk, goals, ways.leading, labels) for walk in walks]


class _Ways:
    """The ways from a start to its goals.

    Attributes
    ----------
    links : as in `extract_paths`
    order : pages that can be reached, nearest first
    lists : goals that each page links to, where there are any
    leading : pages on the ways, goals included
    """

    def __init__(self, start: str, links: Links, goals: AbstractSet[str]) -> None:
        self.links = links
        self.order = [start]
        self._depth = {start: 0}
        self._parent: dict[str, str] = {}
        waiting = deque([start])
        while waiting:
            page = waiting.popleft()
            for target in links(page):
                if target not in self._depth:
                    self._depth[target] = self._depth[page] + 1
                    self._parent[target] = page
                    self.order.append(target)
                    waiting.append(target)
        self.lists = {
            page: found
            for page in self.order
            if (found := goals & set(links(page)) - {page, start})
        }
        self._share_out(goals & self._depth.keys() - {start})
        self.leading = {page for goal in goals & self._depth.keys() for page in self.to(goal)}

    def _share_out(self, goals: AbstractSet[str]) -> None:
        """Choose the page from which each goal is reached."""
        left = set(goals)
        lists = {page: set(found) for page, found in self.lists.items()}
        while left:
            best = max(
                lists, key=lambda page: len(lists[page]) / (self._depth[page] + len(lists[page]))
            )
            taken = lists.pop(best) & left
            # not by way of themselves
            taken -= set(self.to(best))
            self._parent.update(dict.fromkeys(taken, best))
            left -= taken
            lists = {page: rest for page, found in lists.items() if (rest := found & left)}
            if not lists:
                break

    def to(self, page: str) -> list[str]:
        """Return the way from the start to a page."""
        way = [page]
        while way[-1] in self._parent:
            way.append(self._parent[way[-1]])
        return way[::-1]


def _fails(
    ways: _Ways,
    found: list[list[str]],
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
        for target in ways.links(page)
        if target not in ways.leading and target not in ways.lists
    ]
    if not exits:
        return []
    walks = [exits[i] for i in rng.permutation(len(exits)).tolist()[:count]]
    while len(walks) < count:
        walk = list(exits[int(rng.integers(len(exits)))])
        for _ in range(int(rng.integers(1, _STRAY + 1))):
            onward = [
                target
                for target in ways.links(walk[-1])
                if target not in walk and target not in ways.leading and target not in ways.lists
            ]
            if not onward:
                break
            walk.append(onward[int(rng.integers(len(onward)))])
        walks.append(walk)
    return walks


def _labelled(
    walk: list[str], goals: AbstractSet[str], leading: AbstractSet[str], labels: Mapping[str, str]
) -> SitePath:
    given: list[str | None] = []
    for page in walk:
        label = labels.get(page)
        if page in goals and page != walk[0]:  # a walk is one to other goals
            given.append(GOAL)
        elif page in leading:
            given.append(None if label in {GOAL, FAIL} else label)
        else:
            given.append(FAIL)  # whatever it is: it leads nowhere
    return SitePath(tuple(walk), tuple(given))
