"""Shards on their way from this worker to others."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.workers.heartbeat import Heartbeat
    from focuscrawl.workers.url_ids import SharedUrlTable

_HOLD = 5.0  # seconds for which the best links of a shard count as if they could be fetched
_MOST = 64  # links of a shard that do


class Handover:
    """Gives shards away of which nothing is under way, and everything is written.

    From when a shard is not crawled here any more until its new owner has read it, nobody can
    fetch its links. Their scores go on being told for that time, a few seconds at most: so
    the others wait for it rather than spend the budget on worse ones.

    Attributes
    ----------
    draining : by shard, how many records have to be written first; -1: not known yet
    """

    def __init__(self, crawl: CrawlState, urls: SharedUrlTable, heartbeat: Heartbeat) -> None:
        self._crawl, self._urls, self._heartbeat = crawl, urls, heartbeat
        self.draining: dict[int, int] = {}
        self._promised: dict[int, tuple[float, NDArray[np.float64]]] = {}  # until, scores

    def give(self, shards: Collection[int]) -> None:
        """Stop crawling the hosts of shards."""
        crawl, urls = self._crawl, self._urls
        given = np.array(sorted(urls.held & frozenset(shards)), np.int64)
        if not len(given):
            return
        urls.held -= frozenset(given.tolist())
        waiting = crawl.frontier.queued()
        of_shards = urls.shards_of(waiting)
        leaving = np.isin(of_shards, given)
        waiting, of_shards = waiting[leaving], of_shards[leaving]
        scores = crawl.frontier.scores(waiting)
        for number in waiting.tolist():
            crawl.frontier.remove(number)
        until = time.monotonic() + _HOLD
        hosts = urls.hosts()[waiting]
        for shard in given.tolist():
            there = of_shards == shard
            best = np.sort(scores[there])[::-1][:_MOST]
            if crawl.plan.delay and len(best):
                best = best[: len(np.unique(hosts[there]))]  # a host is good for one at a time
            self._promised[shard] = (until, best)
            self.draining[shard] = -1

    def make_room(self, surplus: int) -> None:
        """Give away so many shards that others should have, every other one of the best."""
        surplus -= len(self.draining) + self._heartbeat.releasing
        if surplus <= 0:
            return
        held = np.array(sorted(self._urls.held), np.int64)
        waiting = self._crawl.frontier.queued()
        best = np.full(self._urls.shards, -np.inf)
        of_shards = self._urls.shards_of(waiting)
        np.maximum.at(best, of_shards, self._crawl.frontier.scores(waiting))
        order = held[np.argsort(-best[held], kind="stable")]
        self.give(order[np.linspace(len(order) - 1, 0, surplus).astype(np.int64)].tolist())

    def go_on(self) -> None:
        """Release what may be."""
        if not self.draining:
            return
        crawl, urls = self._crawl, self._urls
        busy = {urls.shard(number) for number in crawl.in_flight}
        free = []
        for shard, barrier in self.draining.items():
            if barrier < 0 and shard not in busy:
                self.draining[shard] = crawl.writer.put_so_far
            elif 0 <= barrier <= crawl.writer.written:
                free.append(shard)
        if free:
            self._heartbeat.release(free)
            for shard in free:
                del self.draining[shard]

    def promised(self, landed: Collection[int]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return scores of links under way to another worker, and their shards.

        Parameters
        ----------
        landed : shards that their new owners have read
        """
        now = time.monotonic()
        for shard, (until, _) in list(self._promised.items()):
            if now > until or (shard in landed and shard not in self.draining):
                del self._promised[shard]
        scores = [np.zeros(0), *(each for _, each in self._promised.values())]
        shards = [np.zeros(0, np.int64)]
        shards += [np.full(len(each), shard) for shard, (_, each) in self._promised.items()]
        return np.concatenate(scores), np.concatenate(shards)

    @property
    def on_the_way(self) -> frozenset[int]:
        """Shards whose links are told."""
        return frozenset(self._promised)
