"""Lessons where several workers crawl: one trains, all take up what it has learned."""

from __future__ import annotations

import json
import logging
import math
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import sqlalchemy as sa

from focuscrawl.crawl.part import Part
from focuscrawl.store.refusals import first_line
from focuscrawl.store.schema import models
from focuscrawl.store.worker_tables import crawl, instances
from focuscrawl.workers.inbox import PublishedModel
from focuscrawl.workers.writer import TROUBLE, passes

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.visit import PageVisit
    from focuscrawl.frontier import Arrangement
    from focuscrawl.strategies import Lesson
    from focuscrawl.workers.heartbeat import Heartbeat

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

UNTIL_OTHERS = 0.01  #: seconds to wait at a time for what other workers do
_ENOUGH = 10  # judged URLs that can be learned from
_FEW = 20  # lessons
_PATIENCE = 0.5  # seconds for which a replay waits for a lesson of another worker
_OFTEN = 3  # times in a row that it does in vain
_AGAIN = 2.0  # seconds without lessons where the server is away
_LEARNED = "handed_in"  # metric: how far the table of instances was learned from


class _Judged(NamedTuple):
    """What `Strategy.hand_in` returned; `pooled`: it was put into the pool here at once."""

    data: bytes
    fetches: int
    pooled: bool


class DistributedLearning(Part):
    """Does what `focuscrawl.crawl.parts.learning.Learning` does, for one of several workers.

    One thing at a time in a thread of its own: take up a new model, hand in what was judged here,
    or, at one worker, train on what all have handed in.

    Parameters
    ----------
    heartbeat : knows who trains, and of new models
    me : number of the worker
    """

    def __init__(self, crawl: CrawlState, heartbeat: Heartbeat, me: int) -> None:
        self._crawl = crawl
        self._learner, self._frontier = crawl.strategy, crawl.frontier
        # in a replay pages come from files, and hundreds of them while one thing is done
        self._lag: int | None = None if crawl.web is None else crawl.strategy.lag
        self._engine = crawl.store.engine
        self._heartbeat = heartbeat
        self._me = me
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lesson")
        self._job: Future[tuple[Lesson, Arrangement] | None] | None = None
        self._begun_at: float = math.inf  # fetches of all; inf: nobody waits for what is under way
        # fetches of all when the lesson began that the model here is of; inf: none is waited for
        self._learned_at: float = 0
        self._behind_since, self._in_vain = math.inf, 0
        self._handed_at = 0
        self._trained_at = self._tried_at = 0
        self._pool: Any = self._learner.pool()
        self._pooled = 0  # of the rows in the table
        self._not_before = 0.0
        self._sent: Future[None] | None = None
        self._unsent: list[_Judged] = []
        self._unpublished: dict[str, Any] | None = None
        self._own: set[int] = set()  # rows of the table that the pool had before they were there

    @property
    def pause(self) -> float:  # type: ignore[override]
        """Seconds until the crawl should be asked again: less where the lesson is learned here."""
        return Part.pause if self._waited_for else UNTIL_OTHERS

    def on_recorded(self, visit: PageVisit) -> None:
        """Begin what is due."""
        self._begin_if_due(self._crawl.fetched)

    def poll(self, now: float) -> bool:
        """Begin what is due, and re-order the whole frontier by a model that was taken up."""
        self._begin_if_due(self._crawl.fetched)
        self._adopt()
        return False

    def holds_back(self) -> bool:
        """Tell whether a replay waits for a lesson, of this worker or of another."""
        if self._waited_for:
            return True
        behind = self._behind(self._crawl.fetched)
        if behind:
            self._heartbeat.hurry()
        return behind

    @property
    def _waited_for(self) -> bool:
        """True if nothing may be fetched now: a replay waits for what is under way here.

        As in a crawl of one worker. For others see `_behind`.
        """
        if self._lag is None or self._job is None or self._job.done():
            return False
        return self._crawl.fetched - self._begun_at >= self._lag

    def _behind(self, fetched: int) -> bool:
        """Tell whether a replay waits for another worker's lesson: for a moment, at the beginning.

        While lessons are few, each changes a lot. A lone worker goes on by a model until the next
        lesson is due, and a little further; one of several may miss that one, but not two.
        """
        if self._lag is None or self._learner.model_version >= _FEW:
            return False
        if fetched - self._learned_at < 2.0 * self._learner.period(fetched) + self._lag:
            self._behind_since = math.inf
            return False
        now = time.monotonic()
        self._behind_since = min(self._behind_since, now)
        if now - self._behind_since > _PATIENCE:  # perhaps there is not enough to learn from yet
            self._in_vain += 1
            self._learned_at = fetched if self._in_vain < _OFTEN else math.inf
        return True

    def _begin_if_due(self, fetched: int) -> None:
        """Begin what is due, if nothing is under way.

        Parameters
        ----------
        fetched : fetches of all workers
        """
        busy = self._job is not None or self._sent is not None
        if busy or self._heartbeat.outage.on or time.monotonic() < self._not_before:
            return
        period = self._learner.period(fetched)
        state, model = self._heartbeat.state, self._heartbeat.model
        # what teaches nothing is not waited for
        self._begun_at = math.inf
        if model is not None and model.version > self._learner.model_version:
            self._begun_at = fetched
            self._job = self._thread.submit(self._take_up, model, fetched)
        elif state.trains and fetched - self._trained_at >= period and fetched > self._tried_at:
            self._begun_at = self._handed_at = self._tried_at = fetched
            self._job = self._thread.submit(self._train, fetched)
            self._sent = self._thread.submit(self._send)  # nobody waits for it
        elif not state.trains and fetched - self._handed_at >= period / 2.0:
            self._handed_at = fetched
            self._job = self._thread.submit(self._hand_in)

    def _adopt(self) -> None:
        """Re-order the whole frontier by a model that was taken up."""
        if self._sent is not None and self._sent.done():
            sent, self._sent = self._sent, None
            self._result(sent)
        if self._job is None or not self._job.done():
            return
        done, self._job = self._job, None
        result = self._result(done)
        if result is not None:
            lesson, arrangement = result
            found_since = self._learner.adopt(lesson)
            self._frontier.adopt(arrangement)
            self._frontier.update(*found_since)

    def _result(self, done: Future[_T]) -> _T | None:
        """Return what came of a job; None if the store is away."""
        try:
            return done.result()
        except TROUBLE as error:
            if not passes(error):
                raise
            logger.warning("a lesson is left out, the store is away: %s", first_line(error))
            self._not_before = time.monotonic() + _AGAIN
            return None

    def close(self) -> None:
        """Wait for what is under way, and forget it.

        No scores are noted: the worker that goes on works them out anew.
        """
        self._thread.shutdown()
        self._job = None

    # -- in the other thread ---------------------------------------------------------------

    def _take_up(self, model: PublishedModel, fetched: int) -> tuple[Lesson, Arrangement]:
        lesson = self._learner.take_up(model.version, model.state, fetched)
        self._learned_at, self._in_vain = model.trained_at, 0
        return lesson, self._frontier.arrange(lesson.urls, lesson.scores)

    def _hand_in(self) -> None:
        judged = self._learner.hand_in()
        if judged is not None:
            self._unsent.append(_Judged(*judged, pooled=False))
        self._send()

    def _train(self, fetched: int) -> tuple[Lesson, Arrangement] | None:
        """Learn from all that was handed in, and was judged here, if it is enough.

        Both the lesson and what was judged here go into the store afterwards, see `_send`.
        """
        with self._engine.connect() as connection:
            self._read(connection)
        judged = self._learner.hand_in()
        if judged is not None:
            self._pool.add(self._me, judged[0])
            self._unsent.append(_Judged(*judged, pooled=True))
        if not self._pool.new or len(self._pool) < _ENOUGH:
            return None
        self._trained_at = fetched
        version = self._learner.model_version + 1
        state, count, metrics = self._learner.train(self._pool)
        self._unpublished = {
            "version": version,
            "trained_at_seq": fetched,
            "instances": count,
            "metrics": json.dumps({**metrics, _LEARNED: self._pooled}),
            "state": state,
        }
        return self._take_up(PublishedModel(version, state, fetched), fetched)

    def _send(self) -> None:
        """Give the others what was judged here, and the latest lesson."""
        if not self._unsent and self._unpublished is None:
            return
        with self._engine.begin() as connection:
            n = len(self._unsent)
            more = sa.update(crawl).values(handed_in=crawl.c.handed_in + n)
            last = connection.execute(more.returning(crawl.c.handed_in)).scalar_one()
            numbers = range(last - n + 1, last + 1)
            rows = [
                {"id": number, "worker": self._me, "count": judged.fetches, "data": judged.data}
                for number, judged in zip(numbers, self._unsent, strict=True)
            ]
            if rows:
                connection.execute(sa.insert(instances), rows)
            if self._unpublished is not None:
                self._publish(connection, self._unpublished)
        pooled = [
            number for number, each in zip(numbers, self._unsent, strict=True) if each.pooled
        ]
        self._own.update(pooled)
        self._unsent, self._unpublished = [], None

    def _read(self, connection: Connection) -> None:
        """Take in what was handed in; of this, the new is what no lesson was about."""
        learned = 0
        if not self._pooled:  # another worker may have trained before
            last = sa.select(models.c.metrics).order_by(models.c.version.desc()).limit(1)
            metrics = connection.execute(last).scalar()
            learned = json.loads(metrics)[_LEARNED] if metrics is not None else 0
        rows = sa.select(instances).where(instances.c.id > self._pooled)
        for row in connection.execute(rows.order_by(instances.c.id)):
            self._pooled = row.id
            if row.id in self._own:
                self._own.remove(row.id)
                continue
            self._pool.add(row.worker, row.data)
            if row.id <= learned:
                self._pool.new = 0

    def _publish(self, connection: Connection, model: dict[str, Any]) -> None:
        """Write the model, unless another worker was faster, whose lesson all take up.

        In a transaction that has changed the row `crawl`: so it is one worker at a time.
        """
        latest = connection.execute(sa.select(sa.func.max(models.c.version))).scalar()
        if latest is not None and latest >= model["version"]:
            return
        connection.execute(sa.update(models).where(models.c.state.is_not(None)).values(state=None))
        connection.execute(sa.insert(models), model)
        forget = sa.select(instances.c.id, instances.c.count).order_by(instances.c.id.desc())
        kept, memory = 0, self._pool.options.memory
        for row_id, size in connection.execute(forget):
            if kept >= memory:
                connection.execute(sa.delete(instances).where(instances.c.id <= row_id))
                break
            kept += size
