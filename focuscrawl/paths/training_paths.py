"""Training paths, which a person records or which are extracted from labelled pages."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import reporting_write_errors, write_atomically
from focuscrawl.foundation.urls import normalize
from focuscrawl.foundation.user_input import read_csv_rows, read_text
from focuscrawl.paths.states import FAIL, GOAL

if TYPE_CHECKING:
    from focuscrawl.page import PageView

    Links = Callable[[str], list[str]]

_STRAY = 3  # maximum number of further clicks on a path to a fail


@dataclass(frozen=True, slots=True)
class SitePath:
    """A path through a site, from the start page to a goal page or a failure page.

    Attributes
    ----------
    pages : tuple[str, ...]
        URLs of the pages; each page links to the next.
    labels : tuple[str or None, ...]
        Label of each page: a milestone, ``goal``, ``fail``, or None if unknown. The last is
        ``goal`` or ``fail``, the first is neither.
    """

    pages: tuple[str, ...]
    labels: tuple[str | None, ...]

    @property
    def start(self) -> str:
        """URL of the start page of the site, where the path begins."""
        return self.pages[0]

    @property
    def succeeds(self) -> bool:
        """Whether the path ends at a goal page."""
        return self.labels[-1] == GOAL


def write_paths(paths: Iterable[SitePath], out: Path) -> int:
    """Write training paths to a file atomically; return the number of paths.

    Raises
    ------
    UserError
        The file cannot be written.
    """
    lines = [json.dumps({"pages": path.pages, "labels": path.labels}) + "\n" for path in paths]
    with reporting_write_errors(out, "give another file"):
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, "".join(lines))
    return len(lines)


def read_paths(source: Path) -> list[SitePath]:
    """Read a file of training paths.

    Raises
    ------
    UserError
        The file does not exist, or a line is not a path.
    """
    if not source.exists():
        raise UserError(
            f"{source} not found: create paths with `focuscrawl paths extract` or `record`"
        )
    lines = read_text(source).splitlines()
    paths = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                paths.append(_path(json.loads(line)))
            except (ValueError, KeyError, TypeError) as error:
                reason = " ".join(str(error).split())
                raise UserError(f"{source}, line {number} is not a path: {reason}") from None
    if not paths:
        raise UserError(
            f"{source} has no paths: create paths with `focuscrawl paths extract` or `record`"
        )
    return paths


def _path(found: object) -> SitePath:
    if not isinstance(found, dict):
        raise TypeError("not an object with pages and labels")
    pages, labels = found["pages"], found["labels"]
    if not isinstance(pages, list) or not isinstance(labels, list) or len(pages) != len(labels):
        raise ValueError("pages and labels must be lists of equal length")
    if not pages:
        raise ValueError("pages must not be empty")
    urls = [normalize(url) if isinstance(url, str) else None for url in pages]
    if None in urls:
        raise ValueError(f"{pages[urls.index(None)]!r} is not an http(s) URL")
    for label in labels:
        if label is not None and (not isinstance(label, str) or not label.isprintable()):
            raise ValueError(f"{label!r} is not a label")
    if labels[0] in {GOAL, FAIL}:
        raise ValueError(f"the label of the start page must not be {GOAL} or {FAIL}")
    if labels[-1] not in {GOAL, FAIL}:
        raise ValueError(f"the last label must be {GOAL} or {FAIL}")
    return SitePath(tuple(map(str, urls)), tuple(labels))


class LinkChoice(NamedTuple):
    """A link that a person can follow while recording a path."""

    url: str
    anchor: str


@dataclass(frozen=True)
class Walk:
    """The path of a person to the current page of a site, and the paths saved so far.

    Each step of the person creates a new `Walk`, so every step can be undone.
    """

    pages: tuple[str, ...]
    labels: tuple[str | None, ...]
    saved: tuple[SitePath, ...] = ()

    @classmethod
    def start_at(cls, start: str) -> Walk:
        """Return a new walk whose current page is the start page `start`."""
        return cls((start,), (None,))

    @property
    def current_page(self) -> str:
        """URL of the page that the person is viewing."""
        return self.pages[-1]

    def follow(self, url: str) -> Walk:
        """Follow a link."""
        return replace(self, pages=(*self.pages, url), labels=(*self.labels, None))

    def back(self) -> Walk:
        """Return the walk after one step back; at the start page, return the same walk."""
        if len(self.pages) == 1:
            return self
        return replace(self, pages=self.pages[:-1], labels=self.labels[:-1])

    def label_page(self, label: str) -> Walk:
        """Return the walk with a label for the current page in all paths that contain the page."""
        return replace(
            self,
            labels=(*self.labels[:-1], label),
            saved=tuple(_labelled(path, self.current_page, label) for path in self.saved),
        )

    def finish_path(self, *, goal: bool) -> Walk:
        """Save the path to the current page, which is a goal or failure page, and go back."""
        ending = GOAL if goal else FAIL
        path = SitePath(self.pages, (*self.labels[:-1], ending))
        return replace(self, saved=(*self.saved, path)).back()


def link_choices(view: PageView, targets: Sequence[str | None]) -> list[LinkChoice]:
    """Return the distinct pages that a page links to, each with the first non-empty anchor text.

    The argument `targets` contains the URL that each link leads to, or None for links that cannot
    be followed.
    """
    found: dict[str, LinkChoice] = {}
    for url, anchor in zip(targets, view.links.anchors, strict=True):
        if url is None or url == view.url:
            continue
        if url not in found or (anchor and not found[url].anchor):
            found[url] = LinkChoice(url, anchor)
    return list(found.values())


def _labelled(path: SitePath, page: str, label: str) -> SitePath:
    kept = [
        label if url == page and old not in {GOAL, FAIL} else old
        for url, old in zip(path.pages, path.labels, strict=True)
    ]
    return replace(path, labels=tuple(kept))


@dataclass(frozen=True)
class PathSampling:
    """Maximum number of paths to goal pages per site, and maximum of failure pages per path."""

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
    """Return paths that a person might follow from `start` to goal pages and to failure pages.

    A person who wants all goal pages looks for pages that list goal pages. So the function chooses
    list pages greedily. The next list page is the one that lists the most remaining goal pages per
    click from `start`. The paths to the listed goal pages lead through the chosen page. A path to
    a failure page branches off from a path to a goal page, by a link to a page that links to no
    goal page. Sometimes further clicks follow before the path ends at a failure page.

    Parameters
    ----------
    start : str
        Start page of the site.
    links : Callable[[str], list[str]]
        Returns the distinct pages that a page links to, in document order.
    goals : AbstractSet[str]
        Goal pages.
    labels : Mapping[str, str]
        Milestone of each labelled page. Labels ``goal`` and ``fail`` are ignored.
    sampling : PathSampling
        Number of paths.
    random_state : int
        Seed of the sample.
    """
    rng = np.random.default_rng(random_state)
    site_paths = _GoalPaths(start, links, goals)
    reached = [goal for goal in site_paths.order if goal in goals and goal != start]
    if len(reached) > sampling.goals:
        chosen = rng.choice(len(reached), sampling.goals, replace=False)
        reached = [reached[i] for i in np.sort(chosen).tolist()]
    found = [site_paths.path_to(goal) for goal in reached]
    walks = found + _sample_fails(site_paths, found, round(sampling.fails * len(found)), rng)
    return [_labelled_path(walk, goals, site_paths.on_paths, labels) for walk in walks]


class _GoalPaths:
    """Paths from a start page to goals."""

    def __init__(self, start: str, links: Links, goals: AbstractSet[str]) -> None:
        self.links = links
        self.order = [start]  # reachable pages by distance
        self._depth = {start: 0}
        self._parent: dict[str, str] = {}
        queue = deque([start])
        while queue:
            page = queue.popleft()
            for target in links(page):
                if target not in self._depth:
                    self._depth[target] = self._depth[page] + 1
                    self._parent[target] = page
                    self.order.append(target)
                    queue.append(target)
        self.goal_links = {
            page: found
            for page in self.order
            if (found := goals & set(links(page)) - {page, start})
        }
        self._assign_goals(goals & self._depth.keys() - {start})
        self.on_paths = {  # with the goals
            page for goal in goals & self._depth.keys() for page in self.path_to(goal)
        }

    def _assign_goals(self, goals: AbstractSet[str]) -> None:
        left = set(goals)
        lists = {page: set(found) for page, found in self.goal_links.items()}
        while left:
            best = max(
                lists, key=lambda page: len(lists[page]) / (self._depth[page] + len(lists[page]))
            )
            # a goal on the path to `best` cannot be reached through `best`
            assigned = (lists.pop(best) & left) - set(self.path_to(best))
            self._parent.update(dict.fromkeys(assigned, best))
            left -= assigned
            lists = {page: rest for page, found in lists.items() if (rest := found & left)}
            if not lists:
                break

    def path_to(self, page: str) -> list[str]:
        path = [page]
        while path[-1] in self._parent:
            path.append(self._parent[path[-1]])
        return path[::-1]


def _sample_fails(
    site_paths: _GoalPaths,
    found: list[list[str]],
    count: int,
    rng: np.random.Generator,
) -> list[list[str]]:
    """Return walks that leave the paths in `found`, each by another link while there are any."""
    prefixes: dict[str, list[str]] = {}
    for path in found:
        for i, page in enumerate(path):
            prefixes.setdefault(page, path[: i + 1])
    exits = [
        [*prefix, target]
        for page, prefix in prefixes.items()
        for target in site_paths.links(page)
        if target not in site_paths.on_paths and target not in site_paths.goal_links
    ]
    if not exits:
        return []
    walks = [exits[i] for i in rng.permutation(len(exits)).tolist()[:count]]
    while len(walks) < count:
        walk = list(exits[int(rng.integers(len(exits)))])
        for _ in range(int(rng.integers(1, _STRAY + 1))):
            onward = [
                target
                for target in site_paths.links(walk[-1])
                if target not in walk
                and target not in site_paths.on_paths
                and target not in site_paths.goal_links
            ]
            if not onward:
                break
            walk.append(onward[int(rng.integers(len(onward)))])
        walks.append(walk)
    return walks


def _labelled_path(
    walk: list[str], goals: AbstractSet[str], on_paths: AbstractSet[str], labels: Mapping[str, str]
) -> SitePath:
    given: list[str | None] = []
    for page in walk:
        label = labels.get(page)
        if page in goals and page != walk[0]:  # a start page is the start of paths to other goals
            given.append(GOAL)
        elif page in on_paths:
            given.append(None if label in {GOAL, FAIL} else label)
        else:
            given.append(FAIL)  # with any other label, since no path from the page leads to a goal
    return SitePath(tuple(walk), tuple(given))


@dataclass(frozen=True)
class PageLabels:
    """The label of each page by URL, and the site of each page if the table has sites."""

    labels: dict[str, str]
    sites: dict[str, str]

    def goals(self, goal: str, start: str) -> set[str]:
        """Return the pages on the site of `start` whose label is `goal` or below `goal`."""
        site = self.sites.get(start)
        return {
            url
            for url, label in self.labels.items()
            if (label == goal or label.startswith(f"{goal}/"))
            and (not self.sites or self.sites.get(url) == site)
        }


def read_page_labels(
    path: Path,
    resolve: Callable[[list[str]], Iterable[str | None]],
    *,
    label: str = "topic",
    site: str | None = None,
) -> PageLabels:
    """Read a CSV file of page labels with a column ``url``.

    Parameters
    ----------
    path : Path
        CSV file.
    resolve : Callable[[list[str]], Iterable[str or None]]
        Maps normalised URLs to the web's URLs, or to None for URLs that the web lacks.
    label, site : str, str or None
        Columns of the labels and of the sites.

    Raises
    ------
    UserError
        The file cannot be read, lacks a column, or has no URL of the web.
        The file cannot be read, lacks a column, or names no page that the web has.
    """
    rows = read_csv_rows(path, ["url", label, *([] if site is None else [site])])
    read = [(url, row) for _, row in rows if (url := normalize(row["url"])) is not None]
    known = list(resolve([url for url, _ in read]))
    found = PageLabels({}, {})
    for url, (_, row) in zip(known, read, strict=True):
        if url is not None:
            found.labels[url] = row[label]
            if site is not None:
                found.sites[url] = row[site]
    if not found.labels:
        raise UserError(f"{path} has no URL of the web: give the labels of this web")
    return found
