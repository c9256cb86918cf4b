"""The loop: which URL comes next, and what happens when its page arrives."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.finding import Finding, answer_of, fetch_of, rows_of, visit_of
from focuscrawl.crawl.link_filter import followed
from focuscrawl.crawl.parts.distilling import Distilling
from focuscrawl.crawl.parts.learning import LessonPlan, Lessons
from focuscrawl.crawl.parts.revisit_policy import RevisitPolicy
from focuscrawl.crawl.parts.topic_change import TopicChange
from focuscrawl.crawl.parts.traps import Traps
from focuscrawl.crawl.redirects import Redirects
from focuscrawl.crawl.remote_control import FileControl
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.crawl.visit import NOT_MODIFIED, RELEVANT, Download
from focuscrawl.page import is_html, parse_page
from focuscrawl.store import StoreWriter, VisitRecord
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED
from focuscrawl.strategies import JudgedPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.crawl.folder import CrawlFolder
    from focuscrawl.crawl.plan import CrawlPlan
    from focuscrawl.crawl.remote_control import RemoteControl
    from focuscrawl.crawl.visit import Fetch, Visit
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.frontier import Frontier
    from focuscrawl.page import PageView
    from focuscrawl.store import CrawlStore
    from focuscrawl.strategies import Strategy
    from focuscrawl.webs.protocol import Web

logger = logging.getLogger(__name__)


class Crawl:
    """One focused crawl: its frontier in memory, everything else in its store.

    Every change is a record of the store, whole or not at all; a crash leaves the last of them.

    Parameters
    ----------
    critic, strategy, frontier, store, folder, web, plan : what `open_crawl` makes of a plan
    within : URLs the crawl is confined to; None: no such limit
    returning : what earlier crawls know of the pages
    urls : an empty table, if the strategy has to have it, too
    writer : one of another kind

    Attributes
    ----------
    fetched : fetches recorded, those of earlier runs included
    in_flight : numbers of the URLs given out by `next`, with the scores they had
    control : what people ask of it
    """

    pause = 0.002  #: seconds until a crawl that is `pausing` should be asked again

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
        returning: RevisitPolicy = RevisitPolicy(),  # noqa: B008 - it is immutable: nothing is known
        urls: UrlTable | None = None,
        writer: StoreWriter | None = None,
    ) -> None:
        self.frontier, self.store = frontier, store
        self.folder, self.web, self.plan = folder, web, plan
        self.control: RemoteControl = FileControl(folder.path)
        self.returning, self._within = returning, within
        self.urls = UrlTable() if urls is None else urls
        self.duplicates = Duplicates()
        self.redirects = Redirects(self.urls)
        self.links, self._halted = 0, False
        self.in_flight: dict[int, float] = {}
        self._writer = StoreWriter(store.engine) if writer is None else writer
        self.take_up(critic, strategy)
        self.following = TopicChange(folder.path)
        # sharing small vectors out among threads takes longer than the work on them
        self._blas = threadpool_limits(1, user_api="blas")

    def take_up(self, critic: Critic, strategy: Strategy) -> None:
        """Have another critic and strategy from now on; what was fetched is to be recalled."""
        self.critic, self.strategy = critic, strategy
        self.fetched, self._relevance_sum, self._last_relevant, self._not_modified = 0, 0.0, 0, 0
        plan, replay = self.plan, self.web is not None
        self.traps = Traps(self.urls, self.frontier, plan, strategy)
        self._lessons: LessonPlan | None = Lessons.of(strategy, self.frontier, replay=replay)
        self.distilling = Distilling(plan.distill, plan.distill_sites, replay=replay)

    def start(self, seeds: Sequence[str]) -> None:
        """Begin a run: queue the seeds that are new."""
        self.note("start", self.plan.describe())
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
            self.note("seeds", f"{len(new)} start URLs")
        return len(new)

    def note(self, kind: str, detail: str = "") -> None:
        """Write an event down."""
        self._put(VisitRecord(events=[(self.fetched, kind, detail)]))

    def close(self, reason: str) -> None:
        """Record the stop reason and wait until everything is on disk."""
        self.following.close()
        if self._lessons is not None:
            self._lessons.close(self.urls)
        self.distilling.close()
        self.note("stop", reason)
        self._writer.close()
        self.store.close()
        self.folder.release()
        self._blas.restore_original_limits()

    def flush(self) -> None:
        """Wait until everything recorded so far is on disk."""
        self._writer.flush()

    @property
    def harvest_rate(self) -> float:
        """Mean relevance of all fetches (METHODS 1); 0 before the first."""
        return self._relevance_sum / self.fetched if self.fetched else 0.0

    @property
    def spent(self) -> int:
        """Fetches as they count against the budget: "not modified" costs less than one."""
        return self.fetched - int(self._not_modified * (1.0 - self.plan.not_modified_cost))

    @property
    def stop_reason(self) -> str | None:
        """Why `next` will give out nothing any more; None while it may."""
        if self._writer.failure is not None:
            return "store_error"
        if self._halted:
            return "error"
        if self.plan.budget and self.spent >= self.plan.budget:
            return "budget"
        if self.plan.stagnation and self.fetched - self._last_relevant >= self.plan.stagnation:
            return "no_relevant_page"
        idle = not (self.in_flight or self.following.holds_back)
        if idle and len(self.frontier) == self.frontier.left:
            return "hosts_unavailable" if len(self.frontier) else "frontier_empty"
        return None

    @property
    def unfinished(self) -> bool:
        """True if the crawl goes on when everything under way is done."""
        return self.stop_reason is None and len(self.frontier) > 0

    @property
    def pausing(self) -> bool:
        """True while `next` holds back although URLs wait: for a lesson, limits, the store..."""
        return self._waits or self.frontier.sifting

    @property
    def _waits(self) -> bool:
        learning = self._lessons is not None and self._lessons.waited_for(self.fetched)
        distilling = self.distilling.waited_for(self.fetched)
        return self._writer.full or learning or distilling or self.following.holds_back

    @property
    def store_failure(self) -> BaseException | None:
        """What went wrong with the store; None while it works."""
        return self._writer.failure

    def next(self, now: float) -> Fetch | None:
        """Give out the best URL whose host has room; None if there is none at `now`.

        It counts as under way until `visit`, `fail`, `exclude` or `put_back` is called for it.
        """
        given = 0 < self.plan.budget <= self.spent + len(self.in_flight)
        if given or self._adopt() or self.stop_reason is not None or self._waits:
            return None
        number = self.traps.pop(now, self.note, idle=not self.in_flight)
        if number is None:
            return None
        self.in_flight[number] = self.frontier.score(number)
        return fetch_of(number, self.urls)

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
        self.note("excluded", f"{self.urls[number]}: {why}")

    def fail(self, number: int, error: str, now: float) -> Visit:
        """Record a fetch that brought no answer."""
        self.strategy.observe(number, 0.0, None)
        return self._record(number, Download(status=0), Finding(error=error), now)

    def parse(self, number: int, fetched: Download) -> PageView | None:
        """Parse what came for a URL given out; None if it is no page. May run in any thread."""
        if 200 <= fetched.status < 300 and is_html(fetched.content_type, fetched.body):
            return parse_page(fetched.body, self.urls[number], encoding=fetched.encoding)
        return None

    def visit(self, number: int, fetched: Download, view: PageView | None, now: float) -> Visit:
        """Judge the page that came for a URL given out, score and queue its links, record it.

        Redirects, errors, duplicates and what is no HTML are fetches of relevance 0 (METHODS 1).

        Parameters
        ----------
        view : what `parse` made of `fetched`
        now : seconds on the clock of `next`
        """
        page = Finding()
        if 300 <= fetched.status < 400 and fetched.status != NOT_MODIFIED:
            self._redirect(number, fetched.location, page)
        elif view is not None:
            self._judge(number, fetched, view, page)
        elif fetched.status == NOT_MODIFIED:
            page.relevance = self.returning.relevance(self.urls[number])
        elif 200 <= fetched.status < 300:
            page.error = "no HTML"
        self.strategy.observe(number, page.relevance, page.duplicate_of)
        if view is not None and page.duplicate_of is None:
            self._expand(number, view, page)
        return self._record(number, fetched, page, now)

    def _redirect(self, number: int, location: str | None, page: Finding) -> None:
        """Queue where a redirect leads in place of what was redirected: it comes next."""
        target = None if location is None else self.resolve([location])[0]
        page.links = int(location is not None)
        page.error = self.redirects.refusal(number, location, target)
        if target is not None and page.error is None:
            page.followed = 1
            new = self.urls.add(target, self.urls.depth(number), number)
            if new not in self.in_flight:
                self._queue(new, math.inf)

    def _judge(self, number: int, fetched: Download, view: PageView, page: Finding) -> None:
        """Have the critic judge an HTML page, unless it is a duplicate."""
        page.title, page.links = view.title, len(view.links) + view.links_cut
        page.digest = Duplicates.digest(fetched.body)
        if view.canonical is not None:
            page.canonical = self.resolve([view.canonical])[0] or view.canonical
        names = Duplicates.names(self.urls[number], page.canonical)
        page.duplicate_of = self.duplicates.find(page.digest, names)
        if page.duplicate_of is not None:
            return
        judgement = self.critic.judge([view])
        self.duplicates.add(number, page.digest, names)
        for name in names[1:]:
            self._strike_out(name)
        self.traps.judged(number, view, page)
        page.relevance = float(judgement.relevance[0])
        if judgement.probabilities is not None:
            page.probabilities = judgement.probabilities[0]
            page.topic = self.critic.classes[int(np.argmax(page.probabilities))]
        page.answer = answer_of(view, fetched)

    def _expand(self, number: int, view: PageView, page: Finding) -> None:
        """Score the links of a page and queue where they lead."""
        depth = self.urls.depth(number)
        found = self._followed(number, view)
        targets = [self.urls.add(url, depth + 1, number) for url in found.values()]
        judged = JudgedPage(
            view=view,
            url=number,
            seq=self.fetched + 1,
            depth=depth,
            relevance=page.relevance,
            probabilities=page.probabilities,
            links=np.array([*found], dtype=np.int64),
            targets=np.array(targets, dtype=np.int64),
            referrer=self.urls.found_on(number),
        )
        expansion = self.strategy.expand(judged)
        page.link_rows = rows_of(judged, expansion.link_scores, self.model_version, self.links)
        self.links += len(found)
        page.followed, page.memo = len(found), expansion.memo
        for target, score in self.urls.undecided(expansion.urls, expansion.scores):
            self._queue(target, score)

    def _followed(self, number: int, view: PageView) -> dict[int, str]:
        """Return the links of a page that are followed, by their places, and where they lead."""
        return followed(self.resolve(view.links.urls), any_media=self.plan.any_media)

    def resolve(self, urls: Sequence[str]) -> Sequence[str | None]:
        """Map URLs to those the crawl may fetch, None: in a closed replay what is recorded."""
        web = self.web if self.plan.closed else None
        known: Sequence[str | None] = urls if web is None else web.resolve(urls)
        within = self._within
        return known if within is None else [url if url in within else None for url in known]

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
        state = UNFOLLOWED if score == -math.inf else QUEUED
        if self.duplicates.stands_for(self.urls[number]) is not None:
            state = EXCLUDED
        self.urls.change(number, state, kept)
        if state == UNFOLLOWED:  # what waits is not worth a fetch any more
            self.frontier.remove(number)
        elif state == QUEUED and number not in self.in_flight:
            self.frontier.push(number, self.urls.host(number), score)

    @property
    def model_version(self) -> int:
        """Version of the model that scores links; 0 for a strategy that does not learn."""
        return 0 if self._lessons is None else self._lessons.model_version

    def begin_lesson(self) -> None:
        """Have the strategy learn if it is due."""
        if self._lessons is not None:
            self._lessons.begin_if_due(self.fetched)

    def _adopt(self) -> bool:
        """Take up what was worked out beside the crawl; tell whether it has to hold back."""
        try:
            if self.following.look(self):
                return True
            model = None if self._lessons is None else self._lessons.adopt(self.fetched)
            raised = self.distilling.adopt(self.fetched, self.urls, self.frontier)
        except Exception:
            logger.exception("a lesson failed, or the distiller, or a new definition")
            self._halted = True
            return True
        if model is not None or raised:
            self._put(VisitRecord(model=model, events=raised))
        return False

    def count(self, seq: int, relevance: float, status: int) -> None:
        """Count a fetch."""
        self.fetched = seq
        self._not_modified += status == NOT_MODIFIED
        self._relevance_sum += relevance
        if relevance > RELEVANT:
            self._last_relevant = seq

    def _record(self, number: int, fetched: Download, page: Finding, now: float) -> Visit:
        score = self.in_flight.pop(number)
        self.frontier.release(number, now)
        self.urls.change(number, FETCHED, self.urls.score(number))
        self.count(self.fetched + 1, page.relevance, fetched.status)
        row = page.row(self.fetched, number, None if score == math.inf else score, fetched)
        self._put(page.record(row, self.traps.visited(self.fetched, number, page)))
        self.distilling.visited(self.urls, number, page)
        self.begin_lesson()
        return visit_of(row, self.urls)

    def _put(self, record: VisitRecord) -> None:
        self.urls.flush(record)
        self._writer.put(record)
