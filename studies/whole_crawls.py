"""Best-first crawls, in memory, of a task's judged web, and the links of such crawls."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from focuscrawl.critic import load_critic
from focuscrawl.distiller import LinkGraph, Sites
from focuscrawl.foundation.urls import host
from focuscrawl.lab.judged_web import judge_web
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.lab.judged_web import JudgedWeb
    from focuscrawl.webs.web_protocol import Web
    from studies.topic_tasks import Task


class Opened(NamedTuple):
    """The web of a task, its critic, and the judged web."""

    web: Web
    critic: Critic
    whole: JudgedWeb


def opened(task: Task) -> Opened:
    """Open the web and the critic of a task."""
    web, critic = open_web(task.recording), load_critic(task.critic, task.topic)
    return Opened(web, critic, judge_web(web, critic))


class Fetched(NamedTuple):
    """A page, and the page that first linked to it; None for a seed."""

    page: int
    referrer: int | None


class SoftCrawl:
    """A best-first crawl of a judged web, with the maximum relevance over paths [F99].

    A page whose content was fetched already is a fetch of relevance 0, and its links are not
    followed.
    """

    def __init__(self, whole: JudgedWeb, relevance: Floats, seeds: list[int]) -> None:
        self.whole = whole
        self.relevance = relevance
        self._seeds = seeds
        self.fetched: dict[int, bool] = {}  # whether its content was new
        self._contents: set[int] = set()
        self._found_on: dict[int, int | None] = dict.fromkeys(seeds)
        self._best = dict.fromkeys(seeds, 1.0)
        self._heap = [(-1.0, n, page) for n, page in enumerate(seeds)]
        self._count = len(self._heap)

    def fetch(self, fetches: int) -> list[Fetched]:
        """Fetch up to `fetches` further pages."""
        found: list[Fetched] = []
        while self._heap and len(found) < fetches:
            _, _, page = heapq.heappop(self._heap)
            if page in self.fetched:
                continue
            content = int(self.whole.content[page])
            self.fetched[page] = content not in self._contents
            found.append(Fetched(page, self._found_on[page]))
            if self.fetched[page]:
                self._contents.add(content)
                self._expand(page)
        return found

    def rejudged(self, relevance: Floats) -> SoftCrawl:
        """Return this crawl with its pages judged by another relevance."""
        other = SoftCrawl(self.whole, relevance, self._seeds)
        for page, new in self.fetched.items():
            other.fetched[page] = new
            if new:
                other._contents.add(int(self.whole.content[page]))
                other._expand(page)
        return other

    def _expand(self, page: int) -> None:
        score = float(self.relevance[page])
        for target in self.whole.links(page):
            self._found_on.setdefault(target, page)
            if target not in self.fetched and score > self._best.get(target, -1.0):
                self._best[target] = score
                self._count += 1
                heapq.heappush(self._heap, (-score, self._count, target))


def best_first(
    whole: JudgedWeb, relevance: Floats, seeds: Sequence[int], fetches: int
) -> list[int]:
    """Return the pages that the baseline [A02 section 2.1] fetches, in order."""
    return [page for page, _ in SoftCrawl(whole, relevance, list(seeds)).fetch(fetches)]


def hosts_of(whole: JudgedWeb) -> Ints:
    """Return an id for the host of each page."""
    return pd.factorize(np.array([host(url) for url in whole.urls], object))[0]


def link_graph(
    whole: JudgedWeb,
    relevance: Floats,
    hosts: Ints,
    fetched: Sequence[int],
) -> LinkGraph:
    """Return the links of the pages that were fetched first of all with their content.

    Copies count as the first fetched page with the same content. `fetched` has pages in order.
    """
    content, pages = whole.content, np.array(fetched, np.int64)
    pages = pages[np.sort(np.unique(content[pages], return_index=True)[1])]
    first = np.full(len(content), -1)
    first[content[pages]] = pages
    links = [np.array(whole.links(page), np.int64) for page in pages.tolist()]
    source = np.repeat(pages, [len(each) for each in links])
    target = np.concatenate([*links, np.zeros(0, np.int64)])
    target = np.where(first[content[target]] >= 0, first[content[target]], target)
    known = np.full(len(content), np.nan)
    known[pages] = relevance[pages]
    return LinkGraph(source, target, Sites.by_host_or_none(source, target, hosts).of_pages, known)
