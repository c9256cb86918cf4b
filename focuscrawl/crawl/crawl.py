"""The loop: which URL comes next, and what happens when its page arrives."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from focuscrawl.crawl.distilling import Distilling
from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.filters import may_be_page
from focuscrawl.crawl.finding import Finding, visit_of
from focuscrawl.crawl.lessons import Lessons
from focuscrawl.crawl.types import Fetch, Fetched, Visit
from focuscrawl.crawl.urltable import UrlTable
from focuscrawl.page import is_html, parse_page
from focuscrawl.store import StoreWriter, VisitRecord
from focuscrawl.store.records import LinkRow
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED
from focuscrawl.strategies import JudgedPage, Learner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.crawl.folder import CrawlFolder
    from focuscrawl.crawl.plan import CrawlPlan
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.frontier import Frontier
    from focuscrawl.page import PageView
    from focuscrawl.store import CrawlStore
    from focuscrawl.strategies import Strategy
    from focuscrawl.webs.protocol import Web

logger = logging.getLogger(__name__)

RELEVANT = 0.5  # a page counts as relevant above (METHODS 4.4)


class Crawl:
    """One focused crawl: its frontier in memory, everything else in its store.

    Every change goes to the store as one record that is written whole or not at all; after a
    crash the crawl goes on from the last record.

    Parameters
    ----------
    critic, strategy, frontier, store, folder, web, plan : what `open_crawl` makes of a plan
    within : URLs the crawl is confined to; None: no such limit

    Attributes
    ----------
    fetched : fetches recorded, those of earlier runs included
    in_flight : numbers of the URLs given out by `next`, with the scores they had
    """

    def __init__(
        self,
        *,
        critic: Critic,
        strategy: Strategy,
        frontier: Frontier,
        store: CrawlStore,
        folder: CrawlFolder,
        web: Web | None,
        plan: CrawlPlan,
        within: frozenset[str] | None = None,
    ) -> None:
        self.critic = critic
        self.strategy = strategy
        self.frontier = frontier
        self.store = store
        self.folder = folder
        self.web = web
        self.plan = plan
        self._within = within
        self.urls = UrlTable()
        self.duplicates = Duplicates()
        self.fetched = 0
        self.links = 0
        self.in_flight: dict[int, float] = {}
        self._relevance_sum = 0.0
        self._last_relevant = 0
        self._halted = False
        self._writer = StoreWriter(store.engine)
        self._lessons = None
        if isinstance(strategy, Learner):
            self._lessons = Lessons(strategy, frontier, replay=web is not None)
        self.distilling = Distilling(plan.distill, plan.distill_sites, replay=web is not None)
        # A crawl multiplies small vectors all the time: sharing them out among threads takes
        # longer than the work, and many times longer when several crawls share the machine.
        self._blas = threadpool_limits(1, user_api="blas")

    def start(self, seeds: Sequence[str]) -> None:
        """Begin a run: queue the seeds that are new."""
        self._put(VisitRecord(events=[(self.fetched, "start", self.plan.describe())]))
        self.add_seeds(seeds)
        self.begin_lesson()  # one may have been under way when the last run ended

    def add_seeds(self, urls: Sequence[str]) -> int:
        """Queue the start URLs that do not wait already; return how many those are."""
        new = []
        for url in urls:
            known = self.urls.get(url)
            if known is None or self.urls.state(known) == UNFOLLOWED:
                self._queue(self.urls.add(url, 0, None), math.inf)
                new.append(url)
        if new:
            self._put(VisitRecord(events=[(self.fetched, "seeds", f"{len(new)} start URLs")]))
        return len(new)

    def close(self, reason: str) -> None:
        """Record the stop reason and wait until everything is on disk."""
        if self._lessons is not None:
            self._lessons.close()
        self.distilling.close()
        self._note_scores()
        self._put(VisitRecord(events=[(self.fetched, "stop", reason)]))
        self._writer.close()
        self.store.close()
        self.folder.release()
        self._blas.restore_original_limits()

    # -- what comes next -----------------------------------------------------------------

    @property
    def harvest_rate(self) -> float:
        """Mean relevance of all fetches (METHODS 1); 0 before the first."""
        return self._relevance_sum / self.fetched if self.fetched else 0.0

    @property
    def stop_reason(self) -> str | None:
        """Why `next` will give out nothing any more; None while it may."""
        if self._writer.failure is not None:
            return "store_error"
        if self._halted:
            return "error"
        if self.plan.budget and self.fetched >= self.plan.budget:
            return "budget"
        if self.plan.stagnation and self.fetched - self._last_relevant >= self.plan.stagnation:
            return "no_relevant_page"
        if not len(self.frontier) and not self.in_flight:
            return "frontier_empty"
        return None

    @property
    def pausing(self) -> bool:
        """True while `next` holds back although URLs wait: for store, lesson or distiller."""
        learning = self._lessons is not None and self._lessons.waited_for(self.fetched)
        return self._writer.full or learning or self.distilling.waited_for(self.fetched)

    @property
    def store_failure(self) -> BaseException | None:
        """What went wrong with the store; None while it works."""
        return self._writer.failure

    def next(self, now: float) -> Fetch | None:
        """Give out the best URL whose host has room; None if there is none at `now`.

        It counts as under way until `visit`, `fail`, `exclude` or `put_back` is called for it.
        """
        budget = self.plan.budget
        if budget and self.fetched + len(self.in_flight) >= budget:
            return None
        self._adopt()
        if self.stop_reason is not None or self.pausing:
            return None
        number = self.frontier.pop(now)
        if number is None:
            return None
        self.in_flight[number] = self.frontier.score(number)
        return Fetch(
            id=number,
            url=self.urls[number],
            host=self.urls.host_name(number),
            depth=self.urls.depth(number),
            score=self.urls.score(number),
            referrer=self.urls.referrer(number),
        )

    # -- what came of it -----------------------------------------------------------------

    def put_back(self, number: int, now: float) -> None:
        """Queue a URL again that was given out and could not be fetched yet."""
        score = self.in_flight.pop(number)
        self.frontier.release(number, now)
        self.frontier.push(number, self.urls.host(number), score)

    def halt(self, number: int, now: float) -> None:
        """Give out nothing any more, after an error while `number` was visited; it is put back.

        What failed on one page, a critic or a strategy, would fail on the next.
        """
        self._halted = True
        if number in self.in_flight:
            self.put_back(number, now)

    def exclude(self, number: int, why: str, now: float) -> None:
        """Leave a URL that was given out unfetched for good; it costs no budget."""
        del self.in_flight[number]
        self.frontier.release(number, now)
        self.urls.change(number, EXCLUDED, self.urls.score(number))
        self._put(VisitRecord(events=[(self.fetched, "excluded", f"{self.urls[number]}: {why}")]))

    def fail(self, number: int, error: str, now: float) -> Visit:
        """Record a fetch that brought no answer."""
        self.strategy.observe(number, 0.0, None)
        return self._record(number, Fetched(status=0), Finding(error=error), now)

    def parse(self, number: int, fetched: Fetched) -> PageView | None:
        """Parse what came for a URL given out; None if it is no page. May run in any thread."""
        if 200 <= fetched.status < 300 and is_html(fetched.content_type, fetched.body):
            depths = getattr(self.strategy, "needs_depths", False)
            url = self.urls[number]
            return parse_page(fetched.body, url, encoding=fetched.encoding, depths=depths)
        return None

    def visit(self, number: int, fetched: Fetched, view: PageView | None, now: float) -> Visit:
        """Judge the page that came for a URL given out, score and queue its links, record it.

        Redirects, errors, duplicates and what is no HTML are fetches of relevance 0 (METHODS 1).

        Parameters
        ----------
        view : what `parse` made of `fetched`
        now : seconds on the clock of `next`
        """
        page = Finding()
        if 300 <= fetched.status < 400 and fetched.location is not None:
            self._redirect(number, fetched.location, page)
        elif view is not None:
            self._judge(number, fetched, view, page)
        elif 200 <= fetched.status < 300:
            page.error = "no HTML"
        self.strategy.observe(number, page.relevance, page.duplicate_of)
        if view is not None and page.duplicate_of is None:
            self._expand(number, view, page)
        return self._record(number, fetched, page, now)

    def _redirect(self, number: int, location: str, page: Finding) -> None:
        """Queue where a redirect leads in place of what was redirected: it comes next."""
        page.links = 1
        (target,) = self._resolve([location])
        if target is not None and target != self.urls[number]:
            page.followed = 1
            new = self.urls.add(target, self.urls.depth(number), number)
            if new not in self.in_flight:
                self._queue(new, math.inf)

    def _judge(self, number: int, fetched: Fetched, view: PageView, page: Finding) -> None:
        """Have the critic judge an HTML page, unless it is a duplicate."""
        page.title, page.links = view.title, len(view.links)
        page.digest = Duplicates.digest(fetched.body)
        if view.canonical is not None:
            page.canonical = self._resolve([view.canonical])[0] or view.canonical
        names = Duplicates.names(self.urls[number], page.canonical)
        page.duplicate_of = self.duplicates.find(page.digest, names)
        if page.duplicate_of is not None:
            return
        judgement = self.critic.judge([view])
        self.duplicates.add(number, page.digest, names)
        for name in names[1:]:
            self._strike_out(name)
        page.relevance = float(judgement.relevance[0])
        if judgement.probabilities is not None:
            page.probabilities = judgement.probabilities[0]
            page.topic = self.critic.classes[int(np.argmax(page.probabilities))]

    def _expand(self, number: int, view: PageView, page: Finding) -> None:
        """Score the links of a page and queue where they lead."""
        depth = self.urls.depth(number)
        links, targets = list[int](), list[int]()
        for i, url in enumerate(self._resolve(view.links.urls)):
            if url is not None and (self.plan.any_media or may_be_page(url)):
                links.append(i)
                targets.append(self.urls.add(url, depth + 1, number))
        judged = JudgedPage(
            view=view,
            url=number,
            seq=self.fetched + 1,
            depth=depth,
            relevance=page.relevance,
            probabilities=page.probabilities,
            links=np.array(links, dtype=np.int64),
            targets=np.array(targets, dtype=np.int64),
            referrer=self.urls.found_on(number),
        )
        expansion = self.strategy.expand(judged)
        version = self.model_version  # asked once: it takes longer than all else done to a link
        for i, target, left, score in zip(
            links,
            targets,
            view.links.left[judged.links].tolist(),
            expansion.link_scores.tolist(),
            strict=True,
        ):
            row = LinkRow(
                id=self.links,
                source=number,
                target=target,
                anchor=view.links.anchors[i],
                dom_position=left,
                score=score if math.isfinite(score) else None,
                model_version=version,
            )
            page.link_rows.append(row)
            self.links += 1
        page.followed, page.memo = len(links), expansion.memo
        for target, score in zip(expansion.urls.tolist(), expansion.scores.tolist(), strict=True):
            self._queue(target, score)

    def _resolve(self, urls: Sequence[str]) -> Sequence[str | None]:
        """Map URLs to those the crawl may fetch, None: in a closed replay what is recorded."""
        known: Sequence[str | None] = urls
        if self.web is not None and self.plan.closed:
            known = self.web.resolve(urls)
        if self._within is not None:
            return [url if url in self._within else None for url in known]
        return known

    def _strike_out(self, name: str) -> None:
        """Take a URL out of the frontier whose page has come under another URL."""
        number = self.urls.get(name)
        if number is None or number in self.in_flight or self.urls.state(number) != QUEUED:
            return
        self.frontier.remove(number)
        self.urls.change(number, EXCLUDED, self.urls.score(number))

    def _queue(self, number: int, score: float) -> None:
        """Give a URL its new score, and a place in the frontier unless it has left it."""
        if self.urls.state(number) in (FETCHED, EXCLUDED):
            return
        if self.urls.state(number) == QUEUED and self.frontier.score(number) == math.inf:
            return  # a seed comes before every link, whatever links to it
        kept = score if math.isfinite(score) else None
        if self.duplicates.stands_for(self.urls[number]) is not None:
            self.urls.change(number, EXCLUDED, kept)
            return
        self.urls.change(number, UNFOLLOWED if score == -math.inf else QUEUED, kept)
        if score == -math.inf:
            self.frontier.remove(number)  # what waits is not worth a fetch any more
        elif number not in self.in_flight:
            self.frontier.push(number, self.urls.host(number), score)

    # -- what is learned -----------------------------------------------------------------

    @property
    def model_version(self) -> int:
        """Version of the model that scores links; 0 for a strategy that does not learn."""
        return self.strategy.model_version if isinstance(self.strategy, Learner) else 0

    def begin_lesson(self) -> None:
        """Have the strategy learn if it is due."""
        if self._lessons is not None:
            self._lessons.begin_if_due(self.fetched)

    def _adopt(self) -> None:
        try:
            model = None if self._lessons is None else self._lessons.adopt(self.fetched)
            raised = self.distilling.adopt(self.fetched, self.urls, self.frontier)
        except Exception:
            logger.exception("a lesson failed, or the distiller: the next one would, too")
            self._halted = True
            return
        if model is not None or raised:
            self._put(VisitRecord(model=model, events=raised))

    def _note_scores(self) -> None:
        """Write the scores the frontier ends with; those of a learner change with each lesson."""
        if self._lessons is not None:
            for number in self.frontier.queued().tolist():
                score = self.frontier.score(number)
                self.urls.change(number, QUEUED, None if score == math.inf else score)

    # -- the record ----------------------------------------------------------------------

    def count(self, seq: int, relevance: float) -> None:
        """Count a fetch."""
        self.fetched = seq
        self._relevance_sum += relevance
        if relevance > RELEVANT:
            self._last_relevant = seq

    def _record(self, number: int, fetched: Fetched, page: Finding, now: float) -> Visit:
        score = self.in_flight.pop(number)
        kept = None if score == math.inf else score
        self.frontier.release(number, now)
        self.urls.change(number, FETCHED, self.urls.score(number))
        self.count(self.fetched + 1, page.relevance)
        row = page.row(self.fetched, number, kept, fetched)
        self._put(VisitRecord(page=row, links=page.link_rows, memo=page.memo))
        self.distilling.visited(self.urls, number, page)
        self.begin_lesson()
        return visit_of(row, self.urls)

    def _put(self, record: VisitRecord) -> None:
        self.urls.flush(record)
        self._writer.put(record)
