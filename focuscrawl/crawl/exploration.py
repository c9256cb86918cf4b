"""Exploration: fetches URLs of little-known directories while no known URL has a good score."""

from __future__ import annotations

import heapq
import math
import random
import zlib
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.crawl.part import Part
from focuscrawl.crawl.url_table import url_pattern
from focuscrawl.critic.protocol import RELEVANT

if TYPE_CHECKING:
    from focuscrawl.crawl.part import RestoredFetch
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit
    from focuscrawl.store.history import StoredFetch

EXPLORED = "explored"  # kind of the event that a page was fetched to explore its directory
_SHARE = 0.5  # of the fetches that explore, while no link is good
_MAX_PASSED = 256  # hosts and directories without a suitable URL that one search passes over
_MAX_TIED = 64  # hosts with equally many fetches that one search compares by their best scores
_MAX_DISCOUNTED = 200  # URLs discounted by one call of `Exploration.choose`

BestScore = Callable[[int], float | None]  # best score of a host, see `UrlTree.find`


class Node:
    """A node of the tree: a branch (host or first directory), or a whole directory.

    Attributes
    ----------
    fetched : number of fetched URLs
    rank : checksum of the name, which decides between nodes with equally many fetched URLs
    listed : True if the heap of the branch above has an entry of this node
    """

    __slots__ = ("above", "fetched", "listed", "name", "rank")

    def __init__(self, name: str, above: Branch | None) -> None:
        self.name, self.above = name, above
        self.rank = zlib.crc32(name.encode())
        self.fetched, self.listed = 0, False


class Branch(Node):
    """The root of the tree, a host, or the first directory of URLs of a host.

    Attributes
    ----------
    host : id of the host; -1 for other nodes
    below : nodes below this branch, by name
    heap : fetched URLs, rank and name of the nodes below that may have queued URLs. The number of
        fetched URLs is that of the time when the entry was made.
    """

    __slots__ = ("below", "heap", "host")

    def __init__(self, name: str, above: Branch | None, host: int = -1) -> None:
        super().__init__(name, above)
        self.host = host
        self.below: dict[str, Branch | Directory] = {}
        self.heap: list[tuple[int, int, str]] = []

    def peek(self) -> Branch | Directory | None:
        """Return the node below with the fewest fetches of those in the heap."""
        while self.heap:
            fetched, rank, name = self.heap[0]
            node = self.below[name]
            if node.fetched == fetched:
                return node
            heapq.heapreplace(self.heap, (node.fetched, rank, name))
        return None

    def pop(self) -> None:
        """Remove the node that `peek` has just returned from the heap."""
        self.below[heapq.heappop(self.heap)[2]].listed = False

    def put(self, node: Node) -> None:
        """Put a node below this branch into the heap."""
        if not node.listed:
            heapq.heappush(self.heap, (node.fetched, node.rank, node.name))
            node.listed = True


class Directory(Node):
    """A whole directory; ``urls`` are ids of its URLs that were queued."""

    __slots__ = ("urls",)

    def __init__(self, name: str, above: Branch | None) -> None:
        super().__init__(name, above)
        self.urls = array("i")


Choose = Callable[[Directory], int | None]  # a queued URL of a directory, see `UrlTree.find`


class UrlTree:
    """Tree of hosts and directories that finds queued URLs where the fewest URLs were fetched.

    The levels are the host, the first directory, and the whole directory. Numbers in the names of
    directories do not count, and neither do very deep or repeated directories (`url_pattern`), so
    that the endless directories of a crawler trap are one directory.
    """

    def __init__(self) -> None:
        self._root = Branch("", None)
        self._directories: dict[str, Directory] = {}  # by address

    def add(self, url_id: int, url: str, host_id: int) -> None:
        """Add a URL that was queued."""
        directory = self._directory(url, host_id)
        directory.urls.append(url_id)
        node: Node = directory
        while node.above is not None:
            node.above.put(node)
            node = node.above

    def count_fetch(self, url: str, host_id: int) -> None:
        """Count a fetch of a URL."""
        node: Node | None = self._directory(url, host_id)
        while node is not None:
            node.fetched += 1
            node = node.above

    def find(self, best_score: BestScore, choose: Choose) -> int | None:
        """Return a URL of the directory with the fewest fetches, level by level.

        Of up to 64 hosts with equally many fetches, the host with the best score comes first.

        Parameters
        ----------
        best_score : callable
            Returns the best score of a host, given by its id; -inf if the host may not be asked
            for a page now, and None if it has no queued URL.
        choose : callable
            Returns a queued URL of a directory or None, and removes URLs that are no longer queued
            from `Directory.urls`.
        """
        found, passed = None, list[Branch]()
        while found is None and len(passed) < _MAX_PASSED:
            tied = self._pop_tied_hosts(best_score)
            if not tied:
                break
            for score, host in sorted(tied, key=lambda each: (-each[0], each[1].rank)):
                if found is None and score > -math.inf:
                    found = _search(host, choose)
                passed.append(host)
        for host in passed:
            self._root.put(host)
        return found

    def _pop_tied_hosts(self, best_score: BestScore) -> list[tuple[float, Branch]]:
        """Remove hosts with equally few fetches from the heap; return them with best scores."""
        tied = list[tuple[float, Branch]]()
        while len(tied) < _MAX_TIED and (host := self._root.peek()) is not None:
            assert isinstance(host, Branch)
            if tied and host.fetched > tied[0][1].fetched:
                break
            self._root.pop()
            score = best_score(host.host)
            if score is not None:
                tied.append((score, host))
        return tied

    def _directory(self, url: str, host_id: int) -> Directory:
        address = url.partition("?")[0].rpartition("/")[0]
        found = self._directories.get(address)
        if found is None:
            host, _, path = url_pattern(f"{address}/-").partition("/")
            of_host = self._root.below.setdefault(host, Branch(host, self._root, host_id))
            assert isinstance(of_host, Branch)
            name = path.partition("/")[0]
            first = of_host.below.setdefault(name, Branch(name, of_host))
            assert isinstance(first, Branch)
            last = first.below.setdefault(path, Directory(path, first))
            assert isinstance(last, Directory)
            found = self._directories[address] = last
        return found


def _search(node: Branch | Directory, choose: Choose) -> int | None:
    """Return a URL of the directory below a node that has the fewest fetches."""
    if isinstance(node, Directory):
        return choose(node)
    found, passed = None, list[Node]()
    while found is None and len(passed) < _MAX_PASSED and (below := node.peek()) is not None:
        found = _search(below, choose)
        if found is None:
            node.pop()
            if below.urls if isinstance(below, Directory) else below.heap:
                passed.append(below)
    for each in passed:
        node.put(each)
    return found


class Exploration(Part):
    """Fetches every second URL from where the fewest URLs were fetched, while no link is good.

    A crawl from a portal has no example of a relevant page. If its best scores are low, their
    order says little about where the relevant pages are. So about every second fetch explores if
    the best score of all queued URLs, the mean relevance of the start pages and the harvest rate
    are below `RELEVANT`. It fetches the best URL in the directory with the fewest fetches
    (`UrlTree`). From relevant start pages, exploring has brought nothing. Discounted URLs are not
    explored.

    Which fetches explore is drawn at random, and depends only on their number and on
    `CrawlConfig.random_state`. So a resumed replay makes the same choices.
    """

    def __init__(self, crawl: CrawlState) -> None:
        self._crawl = crawl
        self._in_flight: dict[int, float] = {}  # explored URLs, with the best score instead
        self.reset()
        crawl.frontier.on_queued = self._add

    def reset(self) -> None:
        """Discard all URLs and fetches."""
        self._tree = UrlTree()
        self._start_pages, self._start_relevance = 0, 0.0  # number and sum

    def restore(self, fetch: RestoredFetch) -> None:
        """Count a fetch of an earlier run."""
        if not fetch.stored.is_revisit:
            self._count(fetch.stored, fetch.stored.url)

    def on_restored(self) -> None:
        """Add the queued URLs."""
        for url_id in self._crawl.frontier.queued().tolist():
            self._add(url_id)

    def choose(self, best: int, now: float) -> int | None:
        """Return the URL to fetch at the time ``now``.

        Parameters
        ----------
        best : int
            Id of the URL with the best score of all URLs that may be fetched now.

        Returns
        -------
        int or None
            Id of a URL; None if the search was interrupted, so as not to block the event loop, and
            has to be repeated (`CrawlState.is_discounting`).
        """
        crawl = self._crawl
        score = crawl.frontier.halved_score(best)
        has_examples = self._start_relevance >= RELEVANT * self._start_pages
        is_good = max(score, crawl.harvest_rate) >= RELEVANT
        if has_examples or is_good or self._draw() >= _SHARE:
            return best
        if crawl.frontier.busy_host_links(now, RELEVANT, 1):
            return best
        for url_id in self._in_flight.keys() - crawl.in_flight.keys():  # excluded URLs
            del self._in_flight[url_id]
        for _ in range(_MAX_DISCOUNTED):
            found = self._tree.find(crawl.frontier.best_score, self._choose_in)
            if found is None or found == best:
                return best
            if not crawl.discount(found):
                self._in_flight[found] = score
                return found
        crawl.is_discounting = True
        return None

    def before_record(self, visit: PageVisit) -> None:
        """Add an event to the visit of an explored URL."""
        score = self._in_flight.get(visit.url_id)
        if score is not None:
            reason = f"explored, because the best score was only {max(score, 0.0):.2g}"
            visit.events.append((EXPLORED, f"{visit.url}: {reason}"))

    def on_recorded(self, visit: PageVisit) -> None:
        """Count a fetch."""
        self._in_flight.pop(visit.url_id, None)
        self._count(visit, visit.url_id)

    def _add(self, url_id: int) -> None:
        urls = self._crawl.urls
        self._in_flight.pop(url_id, None)  # it is queued again
        self._tree.add(url_id, urls[url_id], urls.host_id(url_id))

    def _count(self, fetch: StoredFetch | PageVisit, url_id: int) -> None:
        urls = self._crawl.urls
        if urls.depth(url_id) == 0 and 200 <= fetch.status < 300:
            self._start_pages += 1
            self._start_relevance += fetch.relevance
        self._tree.count_fetch(urls[url_id], urls.host_id(url_id))

    def _draw(self) -> float:
        """Return a random number from 0 to 1 that depends only on the number of the fetch."""
        crawl = self._crawl
        number = crawl.fetched + len(crawl.in_flight)
        return random.Random(f"{crawl.config.random_state} {number}").random()

    def _choose_in(self, directory: Directory) -> int | None:
        frontier = self._crawl.frontier
        queued = frontier.select_queued(np.frombuffer(directory.urls, np.intc))
        best = frontier.best_undiscounted(queued)
        directory.urls = array("i", queued.tobytes())
        return best
