"""One of several workers on a crawl: in step with the others, its frontier the hosts it holds."""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.crawl.part import Metric, Part
from focuscrawl.crawl.remote_control import Command
from focuscrawl.frontier.preview import outlook
from focuscrawl.store.refusals import first_line
from focuscrawl.workers.distributed_learning import UNTIL_OTHERS
from focuscrawl.workers.handover import Handover
from focuscrawl.workers.heartbeat import INTERVAL
from focuscrawl.workers.ingest import Ingest
from focuscrawl.workers.recent_fetches import LinkYield, Throughput
from focuscrawl.workers.worker_state import WorkerState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from focuscrawl.crawl import Crawl
    from focuscrawl.crawl.parts.patience import PatientOrder
    from focuscrawl.crawl.visit import PageVisit
    from focuscrawl.workers.budget import BudgetShare
    from focuscrawl.workers.duplicates import SharedDuplicates
    from focuscrawl.workers.heartbeat import Heartbeat
    from focuscrawl.workers.url_ids import SharedUrlTable
    from focuscrawl.workers.worker_state import CrawlTotals

logger = logging.getLogger(__name__)

_OFFERS = 128  # best scores that the others are told
_SLICE = 0.02  # seconds for which the event loop is held to take in what came


class Worker(Part):
    """Gives out a URL only if it is one of the best of all workers, within one exact budget.

    It takes in what the others found, tells them how it stands, and hands shards of the hosts
    over to those that should have them. It is the crawl's `RemoteControl`, too: the heartbeat
    reads what people ask. A pause is for all workers, those to come included; a stop for those
    that were there.

    Parameters
    ----------
    crawl : `fetched` is of all workers, as far as known here
    urls, duplicates : of the crawl
    heartbeat, budget : of this worker
    order : of the crawl; None: no host keeps a link waiting
    me : its number

    Attributes
    ----------
    name, every : see `focuscrawl.crawl.remote_control.RemoteControl`
    """

    pause = UNTIL_OTHERS
    busy = True  # what others find may lead here
    every = INTERVAL

    def __init__(
        self,
        crawl: Crawl,
        *,
        urls: SharedUrlTable,
        duplicates: SharedDuplicates,
        heartbeat: Heartbeat,
        budget: BudgetShare,
        order: PatientOrder | None,
        me: int,
    ) -> None:
        self.name = str(crawl.plan.store)
        self._crawl, self._urls = crawl, urls
        self._paused = False
        self._heartbeat, self._budget, self._me = heartbeat, budget, me
        self._order = order
        self._own_fetches, self._own_relevance = 0, 0.0
        self._now = self._told_at = 0.0
        self._pace = Throughput()
        self._begun = 0
        self._outdone = False  # nothing here is good enough at present
        self._yield = LinkYield()
        self._handover = Handover(crawl, urls, heartbeat)
        self._ingest = Ingest(crawl, urls, duplicates, heartbeat.deliveries)

    def restored(self) -> None:
        """Take in all that the store has for this worker so far."""
        while self._ingest.posted is None and self._heartbeat.failure is None:
            self._ingest.go_on(math.inf)
            time.sleep(Part.pause)
        self._crawl.fetched = self._heartbeat.state.fetched

    # -- what comes next -------------------------------------------------------------------

    def stop_reason(self) -> str | None:
        """Return why the crawl of all workers is over."""
        state, plan = self._heartbeat.state, self._crawl.plan
        if plan.budget and state.fetched >= plan.budget:
            return "budget"
        if plan.stagnation and state.fetched - state.last_relevant >= plan.stagnation:
            return "no_relevant_page"
        if not state.over:
            return None
        return "frontier_empty" if state.reached else "seeds_unreachable"

    @property
    def failure(self) -> BaseException | None:
        """What ended the heartbeat: the lease is lost, or the server is away for too long."""
        return self._heartbeat.failure

    def poll(self, now: float) -> bool:
        """Take in what came, hand over what may be, and let the others know how it stands.

        What is half taken in when this fails is whole in the store, for whoever comes next.
        """
        self._now = now
        if self._paused:
            self._pace.look(now, still=True)  # what it may not do says nothing of what it could
        self._ingest.go_on(time.perf_counter() + _SLICE)
        self._handover.go_on()
        if now - self._told_at >= INTERVAL / 2.0:
            self._tell(now)
            self._share()
        return False

    def holds_back(self) -> bool:
        """Tell whether others have better links, or the budget or the lease are in doubt."""
        waits = self._has_to_wait()
        still = waits and self._outdone and not self._crawl.in_flight
        self._pace.look(self._now, still=still)
        return waits

    def _has_to_wait(self) -> bool:
        if not self._heartbeat.holds_surely or self._budget.left < 1:
            return True
        frontier, state = self._crawl.frontier, self._heartbeat.state
        best = self._crawl.peek(self._now)
        self._outdone = best is not None and frontier.score(best) < state.threshold
        if self._outdone and state.seen.model_version != self._crawl.model_version:
            # the threshold is by another model: so many as were good then are good now
            self._outdone = self._begun - state.seen.begun >= state.good
        if best is None:  # unless limits can be raised, since nobody has anything else
            self._take_totals(state)  # what is told of it says after how many fetches
            begun_since = self._begun != state.seen.begun
            return begun_since or not state.all_defer or not frontier.all_deferred
        return self._outdone

    def began(self, number: int) -> None:
        """Count it against this worker's share of the budget."""
        self._budget.take()
        self._begun += 1

    def did_not_fetch(self, number: int) -> None:
        """Take it back."""
        self._budget.put_back()

    def on_page(self, visit: PageVisit) -> None:
        """Count a fetch made here, and what it brings."""
        self._own_fetches += 1
        self._own_relevance += visit.relevance
        score = math.inf if visit.score is None else visit.score
        self._yield.count(score, visit.newly_queued)

    # -- the others ------------------------------------------------------------------------

    def _tell(self, now: float) -> None:
        """Let the others know how this worker stands."""
        crawl, state = self._crawl, self._heartbeat.state
        self._take_totals(state)
        self._told_at = now
        self._pace.count(now, self._own_fetches)
        defers = crawl.frontier.all_deferred
        idle = (
            (defers or len(crawl.frontier) == crawl.frontier.left)
            and not crawl.in_flight
            and not self._handover.draining
        )
        settled = idle and crawl.writer.written == crawl.writer.put_so_far
        scores, hosts = outlook(crawl.frontier, _OFFERS)
        offers, of_shards = self._offers(scores, hosts, state.landed)
        self._heartbeat.own_state = WorkerState(
            offers=offers,
            of_shards=of_shards,
            on_the_way=self._handover.on_the_way,
            pace=self._pace.value,
            queued=len(crawl.frontier),
            idle_at=self._ingest.posted if settled and self._ingest.empty else None,
            shards=len(self._urls.held),
            model_version=crawl.model_version,
            taken_in=self._ingest.posted,
            in_flight=len(crawl.in_flight),
            paused=self._paused,
            waits=self._outdone or not scores,
            begun=self._begun,
            defers=defers,
        )

    def _take_totals(self, state: CrawlTotals) -> None:
        self._crawl.relevance_sum = state.relevance
        self._crawl.fetched = max(self._crawl.fetched, state.fetched)

    def _offers(
        self, scores: list[float], hosts: list[int], landed: frozenset[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the best scores to tell the others, descending, and their shards.

        A link counts as often as it stands for fetches, see `LinkYield`, and one that is being
        fetched for what it will bring; but where hosts have a delay, each is good for one. What
        this worker waits for is offered as often as anybody asks: then all wait for it.
        """
        crawl, urls = self._crawl, self._urls
        times = 1 if crawl.plan.delay else self._yield.stands_for(_OFFERS)
        under_way = [n for n, score in crawl.in_flight.items() if score < math.inf]
        promised, of_promised = self._handover.promised(landed)
        counts = np.array([times] * len(scores) + [times - 1] * len(under_way), np.int64)
        own = scores + [crawl.in_flight[n] for n in under_way]
        of_hosts = np.array(hosts + [urls.host(n) for n in under_way], np.int64)
        together = np.concatenate([np.repeat(np.array(own), counts), promised])
        of_own = urls.shard_of_host.data[of_hosts]
        of_shards = np.concatenate([np.repeat(of_own, counts), of_promised])
        reserve = -math.inf if self._order is None else self._order.reserve()
        if reserve > -math.inf:
            (best,) = crawl.frontier.awaited(self._now, -math.inf, 1)
            shard = urls.shard_of_host.data[urls.host(best.url)]
            together = np.concatenate([together, np.full(_OFFERS, reserve)])
            of_shards = np.concatenate([of_shards, np.full(_OFFERS, shard)])
        order = np.argsort(-together, kind="stable")[:_OFFERS]
        return together[order], of_shards[order]

    def _share(self) -> None:
        """Give shards to other workers that should have them."""
        state = self._heartbeat.state
        if self._ingest.empty:
            self._handover.make_room(state.surplus)
            if state.spare is not None:
                self._handover.give([state.spare])

    # -- people, and the end ---------------------------------------------------------------

    @property
    def wanted(self) -> Command:
        """What is asked at the moment; a worker that cannot go on is let end."""
        state = self._heartbeat.state
        if self._crawl.store_failure is not None or self._crawl.stop_reason == "error":
            return Command.RUN
        if state.stop:
            return Command.STOP
        return Command.PAUSE if state.paused else Command.RUN

    def obeyed(self, wanted: Command) -> None:
        """Let the others know."""
        self._paused = wanted is Command.PAUSE

    @property
    def budget(self) -> int | None:
        """None: all workers have the one that the crawl was made with."""
        return None

    def extended(self, budget: int) -> None:
        """Do nothing: no other budget is asked for."""

    @property
    def totals(self) -> tuple[int, float]:
        """Fetches and relevance of all workers, as recorded: an estimate may go down again."""
        return self._heartbeat.state.fetched, self._heartbeat.state.relevance

    def metrics(self) -> Iterator[Metric]:
        """Yield how the worker stands, from its memory; see docs/deploy.md."""
        state, lease = self._heartbeat.state, self._heartbeat.lease_left
        unread = state.posted - (self._ingest.posted or 0)
        yield Metric("number", "Which of several workers it is", self._me)
        yield Metric("fetches", "Fetches of this worker", self._own_fetches, counter=True)
        relevance = "Sum of the relevance of its fetches"
        yield Metric("relevance", relevance, self._own_relevance, counter=True)
        yield Metric("shards", "Parts of the hosts that are crawled here", len(self._urls.held))
        yield Metric("lease_seconds", "Until the lease runs out, unless renewed", lease)
        yield Metric("unread", "Rows of evidence since what was taken in", unread)
        yield Metric("trains", "1 if it is the one that trains", int(state.trains))

    def release(self) -> None:
        """Leave, now that everything is written."""
        failure = self._crawl.writer.failure
        if failure is not None:
            said = first_line(failure)
            logger.error("what was not written yet will be fetched again: %s", said)
        self._heartbeat.close()
