"""The loop of one of several workers."""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.crawl.crawl import Crawl
from focuscrawl.store import VisitRecord
from focuscrawl.store.schema import QUEUED
from focuscrawl.workers.distributed_learning import SharedLessons
from focuscrawl.workers.duplicates import SharedDuplicates
from focuscrawl.workers.handover import Handover
from focuscrawl.workers.heartbeat import INTERVAL
from focuscrawl.workers.ingest import Ingest
from focuscrawl.workers.link_yield import LinkYield
from focuscrawl.workers.remote_control import SharedControl
from focuscrawl.workers.states import LeaseLostError, WorkerState
from focuscrawl.workers.throughput import Throughput
from focuscrawl.workers.writer import first_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.crawl.visit import Download, Fetch, Visit
    from focuscrawl.page import PageView
    from focuscrawl.workers.budget import BudgetShare
    from focuscrawl.workers.heartbeat import Heartbeat
    from focuscrawl.workers.url_ids import SharedUrlTable
    from focuscrawl.workers.writer import SharedWriter

logger = logging.getLogger(__name__)

_OFFERS = 128  # best scores that the others are told
_UNTIL_OTHERS = 0.01  # seconds to wait at a time for what others do
_SLICE = 0.02  # seconds for which the event loop is held to take in what came


class SharedCrawl(Crawl):
    """A `Crawl` whose frontier is the shards of one worker, in step with the others.

    Parameters
    ----------
    courier, allowance, writer, urls, me : of this worker
    others : all that `Crawl` takes

    Attributes
    ----------
    fetched : fetches of all workers, as far as known here
    held : shards that are crawled here
    me : number of the worker
    own_fetches, own_relevance : fetches made here, and the sum of their relevance
    """

    def __init__(
        self,
        *,
        courier: Heartbeat,
        allowance: BudgetShare,
        writer: SharedWriter,
        urls: SharedUrlTable,
        me: int,
        **others: Any,
    ) -> None:
        super().__init__(writer=writer, urls=urls, **others)
        self.urls: SharedUrlTable = urls
        self.duplicates: SharedDuplicates = SharedDuplicates(urls)
        self.courier = courier
        self.held: frozenset[int] = frozenset()
        self.me = me
        self.control: SharedControl = SharedControl(self)
        self._allowance = allowance
        self._first: list[int] = []
        self._held_back = False
        self.own_fetches, self.own_relevance = 0, 0.0
        self._told_at, self._pace = 0.0, Throughput()
        self._begun = 0
        self._outdone = False  # nothing here is good enough at present
        self._finds = LinkYield()
        self._parting = Handover(self)
        self._intake = Ingest(self)
        if self.strategy.learns:
            self._lessons = SharedLessons(
                self.strategy,
                self.frontier,
                engine=self.store.engine,
                courier=courier,
                me=me,
                replay=self.web is not None,
            )

    def catch_up(self) -> None:
        """Take in all that the store has for this worker so far."""
        while self._intake.posted < 0 and self.courier.failure is None:
            self._intake.go_on(math.inf)
            time.sleep(self.pause)
        self.fetched = self.courier.state.fetched

    def holds(self, number: int) -> bool:
        """Tell whether a URL is this worker's to fetch."""
        return self.urls.shard(number) in self.held

    # -- what comes next -------------------------------------------------------------------

    @property
    def stop_reason(self) -> str | None:
        """Why `next` will give out nothing any more; None while it may."""
        if isinstance(self.courier.failure, LeaseLostError):
            return "lease_lost"
        if self.courier.failure is not None or self._writer.failure is not None:
            lost = isinstance(self._writer.failure, LeaseLostError)
            return "lease_lost" if lost else "store_error"
        if self._halted:
            return "error"
        state, plan = self.courier.state, self.plan
        if plan.budget and state.fetched >= plan.budget:
            return "budget"
        if plan.stagnation and state.fetched - state.last_relevant >= plan.stagnation:
            return "no_relevant_page"
        return "frontier_empty" if state.over else None

    @property
    def unfinished(self) -> bool:
        """True while there may be something to fetch, here or by what others find."""
        return self.stop_reason is None

    @property
    def pausing(self) -> bool:
        """True while `next` holds back: others have better links, or the store is behind."""
        return self._waits

    @property
    def _waits(self) -> bool:
        return self._held_back

    @property
    def store_failure(self) -> BaseException | None:
        """What went wrong with the store; None while it works."""
        return self._writer.failure or self.courier.failure

    def next(self, now: float) -> Fetch | None:
        """Give out the best URL, if it is one of the best of all workers; see `Crawl.next`."""
        self._keep_up(now)
        self._held_back = self.stop_reason is None and self._has_to_wait(now)
        self._pace.look(now, still=self._held_back and self._outdone and not self.in_flight)
        fetch = super().next(now)
        if fetch is not None:
            self._allowance.take()
            self._begun += 1
        return fetch

    def rest(self, now: float) -> None:
        """Stay in step with the others while nothing may be given out."""
        self._keep_up(now)
        self._adopt()

    def _keep_up(self, now: float) -> None:
        try:
            self._intake.go_on(time.perf_counter() + _SLICE)
            self._parting.go_on()
            self.begin_lesson()
            self._tell(now)
        except Exception:  # what is half taken in is whole in the store, for whoever comes next
            logger.exception("the worker cannot keep up with the others")
            self._halted = True

    def _has_to_wait(self, now: float) -> bool:
        if self._writer.full or not self.courier.holds_surely or self._allowance.left < 1:
            return True
        if self._learning:
            return True
        if isinstance(self._lessons, SharedLessons) and self._lessons.behind(self.fetched):
            self.courier.hurry()
            return True
        best, state = self.frontier.peek(now), self.courier.state
        self._outdone = best is not None and best < state.threshold
        if self._outdone and state.seen.model_version != self.model_version:
            # the threshold is by another model: so many as were good then are good now
            self._outdone = self._begun - state.seen.begun >= state.good
        return best is None or self._outdone

    @property
    def _learning(self) -> bool:
        return self._lessons is not None and self._lessons.waited_for(self.fetched)

    @property
    def pause(self) -> float:  # type: ignore[override]
        """Seconds until the crawl should be asked again while it is `pausing`."""
        return Crawl.pause if self._learning else _UNTIL_OTHERS

    def _tell(self, now: float) -> None:
        """Let the others know how this worker stands."""
        if now - self._told_at < INTERVAL / 2.0:
            return
        state = self.courier.state
        self._relevance_sum = state.relevance
        self.fetched = max(self.fetched, state.fetched)
        self._told_at = now
        self._pace.count(now, self.own_fetches)
        idle = (
            len(self.frontier) == self.frontier.left
            and not self.in_flight
            and not self._parting.draining
        )
        settled = idle and self._writer.written == self._writer.put_so_far
        scores, hosts = self.frontier.outlook(_OFFERS)
        offers, of_shards = self._offers(scores, hosts, state.landed)
        self.courier.standing = WorkerState(
            offers=offers,
            of_shards=of_shards,
            on_the_way=self._parting.on_the_way,
            pace=self._pace.value,
            queued=len(self.frontier),
            idle_at=self._intake.posted if settled and self._intake.empty else None,
            shards=len(self.held),
            model_version=self.model_version,
            taken_in=self.taken_in,
            in_flight=len(self.in_flight),
            paused=self.control.paused,
            waits=self._outdone or not scores,
            begun=self._begun,
        )
        self._share()

    def _offers(
        self, scores: list[float], hosts: list[int], landed: frozenset[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the best scores to tell the others, descending, and their shards.

        A link counts as often as it stands for fetches, see `LinkYield`, and one that is being
        fetched for what it will bring; but where hosts have a delay, each is good for one.
        """
        times = 1 if self.plan.delay else self._finds.stands_for(_OFFERS)
        under_way = [n for n, score in self.in_flight.items() if score < math.inf]
        promised, of_promised = self._parting.promised(landed)
        counts = np.array([times] * len(scores) + [times - 1] * len(under_way), np.int64)
        own = scores + [self.in_flight[n] for n in under_way]
        of_hosts = np.array(hosts + [self.urls.host(n) for n in under_way], np.int64)
        together = np.concatenate([np.repeat(np.array(own), counts), promised])
        of_own = self.urls.shard_of_host.data[of_hosts]
        of_shards = np.concatenate([np.repeat(of_own, counts), of_promised])
        order = np.argsort(-together, kind="stable")[:_OFFERS]
        return together[order], of_shards[order]

    @property
    def taken_in(self) -> int | None:
        """What was posted up to this has been taken in; None before the first time."""
        return self._intake.posted if self._intake.posted >= 0 else None

    # -- what came of it -------------------------------------------------------------------

    def visit(self, number: int, fetched: Download, view: PageView | None, now: float) -> Visit:
        """Judge and record a page, and count what it brings; see `Crawl.visit`."""
        self._finds.begin(self.in_flight[number])
        visit = super().visit(number, fetched, view, now)
        self._finds.end()
        return visit

    def put_back(self, number: int, now: float) -> None:
        """Queue a URL again that was given out; see `Crawl.put_back`."""
        self._allowance.put_back()
        super().put_back(number, now)
        if not self.holds(number):
            self.frontier.remove(number)

    def exclude(self, number: int, why: str, now: float) -> None:
        """Leave a URL unfetched for good; see `Crawl.exclude`."""
        self._allowance.put_back()
        super().exclude(number, why, now)

    def count(self, seq: int, relevance: float, status: int) -> None:
        """Count a fetch made here."""
        super().count(seq, relevance, status)
        self.own_fetches += 1
        self.own_relevance += relevance

    def add_seeds(self, urls: Any) -> int:
        """Queue start URLs, here or with the worker whose hosts they are on."""
        known = len(self._first)
        added = super().add_seeds(urls)
        if len(self._first) > known:
            self._put(VisitRecord())
        return added

    def queue(self, number: int, score: float) -> None:
        """Give a URL its score by what came from another worker."""
        self._queue(number, score)

    def _queue(self, number: int, score: float) -> None:
        """Give a URL its score, and a place in the frontier if it is this worker's."""
        if self.holds(number):
            before = self.urls.state(number)
            super()._queue(number, score)
            if before != QUEUED and self.urls.state(number) == QUEUED:
                self._finds.found(score)
        elif score == math.inf:
            self._first.append(number)
        else:
            self.urls.remember(number, score)

    def _put(self, record: VisitRecord) -> None:
        record.first, self._first = self._first, []
        record.held = self.held
        super()._put(record)

    # -- shards ----------------------------------------------------------------------------

    def take(self, shards: list[int]) -> None:
        """Crawl the hosts of shards from now on; none of their URLs is queued yet."""
        self.held |= frozenset(shards)

    @property
    def put_so_far(self) -> int:
        """Records given to the writer."""
        return self._writer.put_so_far

    @property
    def written(self) -> int:
        """Records that the writer is done with."""
        return self._writer.written

    def _share(self) -> None:
        """Give shards to other workers that should have them."""
        state = self.courier.state
        if self._intake.empty:
            self._parting.make_room(state.surplus)
            if state.spare is not None:
                self._parting.give([state.spare])

    def close(self, reason: str) -> None:
        """Record the stop reason, wait until everything is written, and leave."""
        self.following.close()
        if self._lessons is not None:
            self._lessons.close(self.urls)
        self.distilling.close()
        self._put(VisitRecord(events=[(self.fetched, "stop", reason)]))
        self._writer.close()
        if self._writer.failure is not None:
            said = first_line(self._writer.failure)
            logger.error("what was not written yet will be fetched again: %s", said)
        self.courier.close()
        self.store.close()
        self.folder.release()
        self._blas.restore_original_limits()
