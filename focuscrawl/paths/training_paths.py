"""Training paths: recorded by a person, extracted from labelled pages, kept in a file."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import write_whole
from focuscrawl.foundation.urls import normalize
from focuscrawl.foundation.user_input import read_rows, read_text
from focuscrawl.paths.states import FAIL, GOAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from focuscrawl.page import PageView

    Links = Callable[[str], list[str]]

_STRAY = 3  # most clicks a fail goes on after it left the way


@dataclass(frozen=True, slots=True)
class SitePath:
    """A walk over a site, from its front door on.

    Attributes
    ----------
    pages : URLs, each linked to by the one before; the first is the start of the site
    labels : one a page: a milestone, ``goal``, ``fail``, or None where it is not known; the
        last is ``goal`` or ``fail``, the first is neither
    """

    pages: tuple[str, ...]
    labels: tuple[str | None, ...]

    @property
    def start(self) -> str:
        """The front door of the site."""
        return self.pages[0]

    @property
    def succeeds(self) -> bool:
        """Tell whether the path ends in a goal."""
        return self.labels[-1] == GOAL


def write_paths(paths: Iterable[SitePath], out: Path) -> int:
    """Write paths to a file, whole or not at all; return how many.

    Raises
    ------
    UserError
        The file cannot be written.
    """
    lines = [json.dumps({"pages": path.pages, "labels": path.labels}) + "\n" for path in paths]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(out, "".join(lines))
    except OSError as error:
        raise UserError(f"{out} cannot be written ({error.strerror}): name another") from None
    return len(lines)


def read_paths(source: Path) -> list[SitePath]:
    """Read a file of paths.

    Raises
    ------
    UserError
        There is no such file, or a line of it is no path; it names the line.
    """
    if not source.exists():
        raise UserError(
            f"{source} is not there: make paths with `focuscrawl paths extract` or `record`"
        )
    lines = read_text(source).splitlines()
    paths = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                paths.append(_path(json.loads(line)))
            except (ValueError, KeyError, TypeError) as error:
                reason = " ".join(str(error).split())
                raise UserError(f"{source}, line {number}: no path ({reason})") from None
    if not paths:
        raise UserError(f"{source} holds no path")
    return paths


def _path(found: object) -> SitePath:
    if not isinstance(found, dict):
        raise TypeError("not an object with pages and labels")
    pages, labels = found["pages"], found["labels"]
    if not isinstance(pages, list) or not isinstance(labels, list) or len(pages) != len(labels):
        raise ValueError("pages and labels must be lists of one length")
    if not pages:
        raise ValueError("no page")
    urls = [normalize(url) if isinstance(url, str) else None for url in pages]
    if None in urls:
        raise ValueError(f"{pages[urls.index(None)]!r} is no http(s) URL")
    for label in labels:
        if label is not None and (not isinstance(label, str) or not label.isprintable()):
            raise ValueError(f"{label!r} is no label")
    if labels[0] in {GOAL, FAIL}:
        raise ValueError(f"its first page is where the site begins, neither {GOAL} nor {FAIL}")
    if labels[-1] not in {GOAL, FAIL}:
        raise ValueError(f"the last label must be {GOAL} or {FAIL}")
    return SitePath(tuple(map(str, urls)), tuple(labels))


class LinkChoice(NamedTuple):
    """A link that a person can take, as `link_choices` lists them."""

    url: str
    anchor: str


@dataclass(frozen=True)
class Walk:
    """Where a person is on a site, and the paths saved on the way.

    Each step gives a new one, so that every step can be undone.

    Attributes
    ----------
    pages, labels : from the front door to here; labels are None where none was given
    saved : paths that have ended
    """

    pages: tuple[str, ...]
    labels: tuple[str | None, ...]
    saved: tuple[SitePath, ...] = ()

    @classmethod
    def start_at(cls, start: str) -> Walk:
        """Stand at the front door."""
        return cls((start,), (None,))

    @property
    def current_page(self) -> str:
        """The page that is shown."""
        return self.pages[-1]

    def follow(self, url: str) -> Walk:
        """Take a link."""
        return replace(self, pages=(*self.pages, url), labels=(*self.labels, None))

    def back(self) -> Walk:
        """Go back a page; at the front door stay."""
        if len(self.pages) == 1:
            return self
        return replace(self, pages=self.pages[:-1], labels=self.labels[:-1])

    def label_page(self, label: str) -> Walk:
        """Label this page, on this walk and in all paths saved that go through it."""
        return replace(
            self,
            labels=(*self.labels[:-1], label),
            saved=tuple(_labelled(path, self.current_page, label) for path in self.saved),
        )

    def finish_path(self, *, goal: bool) -> Walk:
        """Save the path to here as one that ends in a goal or a fail, and go back a page."""
        ending = GOAL if goal else FAIL
        path = SitePath(self.pages, (*self.labels[:-1], ending))
        return replace(self, saved=(*self.saved, path)).back()


def link_choices(view: PageView, targets: Sequence[str | None]) -> list[LinkChoice]:
    """Return the links of a page that can be taken: each page once, by its first anchor.

    Parameters
    ----------
    targets : where each of its links leads; None: nowhere
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
    """Return paths from `start` to goals, then to fails: what a person would have clicked.

    A person who wants all goals looks for a list of them. So goals are shared out among the pages
    that link to them: first to the page that has the most for the clicks it takes to get there,
    and so on with those that are left. Fails leave these ways for pages that link to no goal, and
    some go on.

    Parameters
    ----------
    links : gives the pages that a page links to, each once, in document order
    goals : pages looked for
    labels : milestones of pages; pages it lacks stay unlabelled, and those labelled
        ``goal`` or ``fail`` are what `goals` makes them
    """
    rng = np.random.default_rng(random_state)
    ways = _GoalPaths(start, links, goals)
    reached = [goal for goal in ways.order if goal in goals and goal != start]
    if len(reached) > sampling.goals:
        chosen = rng.choice(len(reached), sampling.goals, replace=False)
        reached = [reached[i] for i in np.sort(chosen).tolist()]
    found = [ways.to(goal) for goal in reached]
    walks = found + _sample_fails(ways, found, round(sampling.fails * len(found)), rng)
    return [_labelled_path(walk, goals, ways.leading, labels) for walk in walks]


class _GoalPaths:
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


def _sample_fails(
    ways: _GoalPaths,
    found: list[list[str]],
    count: int,
    rng: np.random.Generator,
) -> list[list[str]]:
    """Return walks that leave the ways found, each by another link as long as there are."""
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


def _labelled_path(
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


@dataclass(frozen=True)
class PageLabels:
    """Labels of pages, by their URLs.

    Attributes
    ----------
    labels : what each page is
    sites : whose it is; empty where the table does not say
    """

    labels: dict[str, str]
    sites: dict[str, str]

    def goals(self, goal: str, start: str) -> set[str]:
        """Return the pages labelled `goal`, or below it; of the site of `start` if it has one."""
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
    """Read a CSV file with a column ``url``.

    Parameters
    ----------
    resolve : maps normalised URLs to how the web spells them; None: not there, and left out
    label, site : names of the columns of labels, and of sites

    Raises
    ------
    UserError
        The file cannot be read, lacks a column, or names no page that the web has.
    """
    rows = read_rows(path, ["url", label, *([] if site is None else [site])])
    read = [(url, row) for _, row in rows if (url := normalize(row["url"])) is not None]
    known = list(resolve([url for url, _ in read]))
    found = PageLabels({}, {})
    for url, (_, row) in zip(known, read, strict=True):
        if url is not None:
            found.labels[url] = row[label]
            if site is not None:
                found.sites[url] = row[site]
    if not found.labels:
        raise UserError(f"{path} labels no page of the web: is it the table of another one?")
    return found
