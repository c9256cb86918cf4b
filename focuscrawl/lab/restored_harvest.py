"""What harvest comes back when a crawl that stagnates does what its alarm proposes [F99 4.2]."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from focuscrawl.critic import load_critic
from focuscrawl.diagnosis import ALARM, HarvestWatch
from focuscrawl.lab.whole_web import whole_web
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.diagnosis import Diagnosis
    from focuscrawl.lab.topic_tasks import Task
    from focuscrawl.lab.whole_web import WholeWeb

MOST = 4000  # fetches until the alarm
NEXT = 200  # fetches after it


def study_restored(task: Task) -> dict[str, pd.DataFrame]:
    """Crawl best-first until the harvest falls, and go on with the topic as it was, and wider.

    The crawl is [F99]'s soft focus, the alarm that of every crawl (`focuscrawl.diagnosis`). The
    wider topic has the class, too, that the alarm proposes first; the crawl is judged anew by it,
    as ``focuscrawl topic mark`` does.

    Returns
    -------
    ``restored``: one row where there was an alarm that proposed something, else none: ``fetches``
    until then, its ``cause``, what was ``marked`` and its ``relation``; harvest ``before`` the
    fall and ``at`` it; of the next `NEXT` fetches ``unmarked`` (the topic as it was), ``wider``
    (marked, by the wider topic), and ``of_topic`` (marked, what of it is the topic as it was)
    """
    web = open_web(task.recording)
    critic = load_critic(task.critic, task.topic)
    whole = whole_web(web, critic)
    own = whole.relevance(task.topic)
    crawl = SoftCrawl(whole, own, whole.numbers(task.seeds))
    alarm = first_alarm(crawl, task.topic)
    if alarm is None or not alarm.proposals:
        return {"restored": pd.DataFrame()}
    proposed = alarm.proposals[0]
    wide = np.maximum(own, whole.relevance(proposed.topic))
    wider = crawl.again(wide)
    unmarked = [own[page] for page, _ in crawl.go_on(NEXT)]
    marked = [page for page, _ in wider.go_on(NEXT)]
    row = {
        "fetches": alarm.seq,
        "cause": alarm.cause,
        "marked": proposed.topic,
        "relation": proposed.relation,
        "before": alarm.before,
        "at": alarm.now,
        "unmarked": sum(unmarked) / NEXT,
        "wider": float(wide[marked].sum()) / NEXT,
        "of_topic": float(own[marked].sum()) / NEXT,
    }
    return {"restored": pd.DataFrame([row])}


class Fetched(NamedTuple):
    """A page, and the one that it was first found on; None for a seed."""

    page: int
    referrer: int | None


class SoftCrawl:
    """A best-first crawl of a whole web that can be judged anew: the maximum over paths [F99].

    A page whose content was fetched already is a fetch of relevance 0, and its links are not
    followed.

    Parameters
    ----------
    whole, seeds : see `WholeWeb`
    relevance : R of every page
    """

    def __init__(self, whole: WholeWeb, relevance: NDArray[np.float64], seeds: list[int]) -> None:
        self.whole = whole
        self.relevance = relevance
        self._seeds = seeds
        self.fetched: dict[int, bool] = {}  # whether its content was new
        self._contents: set[int] = set()
        self._found_on: dict[int, int | None] = dict.fromkeys(seeds)
        self._best = dict.fromkeys(seeds, 1.0)
        self._heap = [(-1.0, n, page) for n, page in enumerate(seeds)]
        self._count = len(self._heap)

    def go_on(self, fetches: int) -> list[Fetched]:
        """Fetch so many pages, or what there is."""
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

    def again(self, relevance: NDArray[np.float64]) -> SoftCrawl:
        """Return the same crawl as it waits when its pages are judged otherwise."""
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


def first_alarm(crawl: SoftCrawl, topic: str) -> Diagnosis | None:
    """Crawl until the harvest falls; None if it does not within `MOST` fetches."""
    watch = HarvestWatch([topic])
    whole = crawl.whole
    while len(crawl.fetched) < MOST and (found := crawl.go_on(1)):
        ((page, referrer),) = found
        new = crawl.fetched[page] and bool(whole.probabilities[page].any())
        told = watch.visited(
            page,
            referrer,
            relevance=float(crawl.relevance[page]) if new else 0.0,
            topic=whole.classes[int(whole.probabilities[page].argmax())] if new else None,
            judged=new,
        )
        if told == ALARM:
            return watch.alarm
    return None
