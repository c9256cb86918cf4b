"""What a crawl knows and has decided, redirects, and how it is restored from its store."""

from __future__ import annotations

import itertools
import logging
import math
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.crawl.crawl_folder import FileControl
from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.part import RestoredFetch
from focuscrawl.crawl.scope import Scope, fits
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.crawl.visit import META_REFRESH, NOT_MODIFIED, PAGE_FAILED, RENDERED
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import MAX_URL
from focuscrawl.store import StoreWriter, VisitRecord
from focuscrawl.store.crawl_store import taking_in
from focuscrawl.store.history import History
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED
from focuscrawl.strategies import RecalledPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.crawl.crawl_folder import CrawlFolder
    from focuscrawl.crawl.crawl_plan import CrawlPlan
    from focuscrawl.crawl.part import Part
    from focuscrawl.crawl.visit import PageVisit
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.frontier import Frontier
    from focuscrawl.page import PageView
    from focuscrawl.store import CrawlStore
    from focuscrawl.store.history import StoredFetch
    from focuscrawl.strategies import Strategy
    from focuscrawl.webs.web_protocol import Web


MOST = 20  # in a row, as browsers have it (WHATWG Fetch, HTTP-redirect fetch)


def refresh_target(view: PageView | None, longest: float) -> str | None:
    """Return where a page leads that shows another one in its place; None: it is a page itself.

    What refreshes soon is a redirect, written in HTML: what a reader comes to see is there. A
    page that loads itself again is none.

    Parameters
    ----------
    longest : seconds; a page that stays for as long, or longer, is a page. 0: every one is
    """
    if view is None or view.refresh in (None, view.url) or view.refresh_delay >= longest:
        return None
    return view.refresh


def has_moved(status: int, error: str | None) -> bool:
    """Tell whether a fetch came to a redirect, by its status and error in the store."""
    return 300 <= status < 400 or (error or "").startswith(META_REFRESH)


class Redirects:
    """Which URLs answered with a redirect, and by which of them a URL was reached."""

    def __init__(self, urls: UrlTable) -> None:
        self._urls = urls
        self._moved: set[int] = set()

    def add(self, number: int) -> None:
        """Take in a URL that redirected in an earlier run."""
        self._moved.add(number)

    def refusal(self, number: int, location: str | None, target: str | None) -> str | None:
        """Take in a redirect, and say why it leads nowhere; None if it does not.

        Parameters
        ----------
        number : of the URL that redirects
        location : where to, None if it does not say or says nonsense
        target : the same among the URLs that may be fetched, None if it is none

        Notes
        -----
        A URL is fetched once, so a circle ends by itself; but it is no answer, and a chain of
        ever new URLs would come before all else until the budget is spent.
        """
        self.add(number)
        if location is None:
            return "redirect to nowhere"
        if not fits(location):
            return f"redirect to nowhere: a URL of {len(location):,} characters"
        chain = [number]
        while (before := self._urls.found_on(chain[-1])) in self._moved and len(chain) < MOST:
            assert before is not None
            chain.append(before)
        if target is not None and target in [self._urls[each] for each in chain]:
            return f"redirect loop: back to {target}"
        if target is not None and len(chain) >= MOST:
            return f"redirects without end: {MOST} in a row"
        return None


logger = logging.getLogger(__name__)

#: pages in a row that critic or strategy fail on: then it is not the pages, and the crawl ends
FAILED_IN_A_ROW = 10
ASIDE = "aside"  # kind of the event that a request went past the frontier
_LONGEST_FAILURE = 300  # characters
_SIFTED = 2000  # URLs that one look may defer


class CrawlState:
    """A crawl as its parts see it; `focuscrawl.crawl.Crawl` adds the loop.

    Every change is a record of the store, whole or not at all; a crash leaves the last of them.

    Parameters
    ----------
    critic, strategy, frontier, store, folder, web, plan : what `open_crawl` makes of a plan
    within : URLs the crawl is confined to; None: no such limit
    urls, duplicates : of another kind, in a crawl in rounds; None: those of a crawl in a folder

    Attributes
    ----------
    scope : what it is confined to by its plan
    parts : what takes part in it, in the order in which the loop calls them
    fetched : fetches recorded, those of earlier runs included
    reached : those of them that brought something, or the news that it has not changed
    last_relevant : the last of them that was relevant
    links : links recorded
    overtaken : fetches during which a much better link waited for its host
    failed_in_a_row : pages of this run, the last ones, that critic or strategy failed on
    any_judged : they did not fail on every page of this run
    in_flight : numbers of the URLs that were given out, with the scores they had
    sifting : the last look at the frontier found nothing but URLs to defer, and is not through
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
        urls: UrlTable | None = None,
        duplicates: Duplicates | None = None,
    ) -> None:
        self.critic, self.strategy, self.frontier = critic, strategy, frontier
        self.store, self.folder, self.web, self.plan = store, folder, web, plan
        self._within = within
        self.scope = Scope(plan)
        self.urls = UrlTable() if urls is None else urls
        self.duplicates = Duplicates() if duplicates is None else duplicates
        self.redirects = Redirects(self.urls)
        self.control = FileControl(folder.path)
        self.writer = StoreWriter(store)
        self.parts: list[Part] = []
        self.in_flight: dict[int, float] = {}
        self.sifting = False
        self._reloading = False
        self._unrecorded: int | None = None  # the URL whose visit is expanded and not recorded
        self._held_records: list[VisitRecord] = []
        self.failed_in_a_row = 0
        self.any_judged = False
        self._failures: set[tuple[str, type[Exception]]] = set()  # of which a trace was shown
        self.reset()

    def reset(self) -> None:
        """Forget every fetch, but not what became of the URLs."""
        self.fetched, self.reached, self.last_relevant, self.links = 0, 0, 0, 0
        self.relevance_sum = 0.0
        self.overtaken = 0
        self._fetched_again, self._not_modified = 0, 0
        self.duplicates.clear()

    # -- counts ----------------------------------------------------------------------------

    def count(self, seq: int, relevance: float, status: int) -> None:
        """Count a fetch."""
        self.fetched = seq
        self.reached += 200 <= status < 300 or status == NOT_MODIFIED
        self._not_modified += status == NOT_MODIFIED
        self.relevance_sum += relevance
        if relevance > RELEVANT:
            self.last_relevant = seq

    def failed_on(self, visit: PageVisit, who: str, error: Exception) -> None:
        """Take note that the critic or the strategy failed on a page; the crawl goes on.

        May run in any thread.

        Parameters
        ----------
        who : ``critic`` or ``strategy``
        """
        visit.failure = f"{who} failed: {type(error).__name__}: {error}"[:_LONGEST_FAILURE]
        visit.events.append((PAGE_FAILED, f"{visit.url}: {visit.failure}"))
        kind = who, type(error)
        trace = None if kind in self._failures or isinstance(error, UserError) else error
        self._failures.add(kind)
        logger.error("%s: %s; the crawl goes on", visit.url, visit.failure, exc_info=trace)

    def count_failure(self, visit: PageVisit) -> None:
        """Count the pages in a row that critic or strategy failed on, of this run."""
        if visit.failure is not None:
            self.failed_in_a_row += 1
        elif visit.digest is not None and visit.twin is None:
            self.failed_in_a_row, self.any_judged = 0, True

    def count_again(self, status: int) -> None:
        """Count a fetch of a page that was fetched before."""
        self._fetched_again += 1
        self._not_modified += status == NOT_MODIFIED

    def count_aside(self, url: str) -> None:
        """Count a request that went past the frontier: a fetch of the budget, and no page."""
        self.count_again(200)
        self.note(ASIDE, url)

    @property
    def exhausted(self) -> bool:
        """True if all that is left of the budget is under way."""
        return 0 < self.plan.budget <= self.spent + len(self.in_flight)

    @property
    def crowded(self) -> bool:
        """True while as many URLs are under way as may be."""
        return 0 < self.plan.concurrency <= len(self.in_flight)

    @property
    def left(self) -> float:
        """Fetches of the budget that have not begun; inf: it has no limit."""
        if not self.plan.budget:
            return math.inf
        return max(0.0, self.plan.budget - self.spent - len(self.in_flight))

    @property
    def harvest_rate(self) -> float:
        """Mean relevance of all fetches (methods 1); 0 before the first."""
        return self.relevance_sum / self.fetched if self.fetched else 0.0

    @property
    def priority_fidelity(self) -> float:
        """Share of the fetches of one of the best links known; 1 before the first."""
        return 1.0 - self.overtaken / max(self.fetched, 1)

    @property
    def spent(self) -> int:
        """Fetches as they count against the budget: "not modified" costs less than one.

        Among them are those past the frontier, of which nothing else is recorded.
        """
        saved = int(self._not_modified * (1.0 - self.plan.not_modified_cost))
        return self.fetched + self._fetched_again - saved

    @property
    def model_version(self) -> int:
        """Version of the model that scores links; 0 for a strategy that does not learn."""
        return self.strategy.model_version

    # -- URLs ------------------------------------------------------------------------------

    def resolve(self, urls: Sequence[str]) -> Sequence[str | None]:
        """Map URLs to those the crawl may fetch: in a closed replay what is recorded.

        None for others, and for those that are too long, wherever they were found.
        """
        web = self.web if self.plan.closed else None
        known: Sequence[str | None] = urls if web is None else web.resolve(urls)
        within = self._within
        if within is not None:
            known = [url if url in within else None for url in known]
        return [url if url is not None and len(url) <= MAX_URL else None for url in known]

    def follow(self, urls: Sequence[str]) -> Sequence[str | None]:
        """Map URLs to those the crawl goes on to by itself: in its scope, too; else as `resolve`.

        What a project's own spider asks for is its own choice.
        """
        found, admits = self.resolve(urls), self.scope.admits
        if self.scope.admits_all:
            return found
        return [url if url and admits(url) else None for url in found]

    def queue(self, number: int, score: float) -> bool:
        """Give a URL its new score, and a place in the frontier unless it has left it.

        Returns
        -------
        True if it began to wait by this
        """
        if not self.urls.holds(number):
            self.urls.leave_to_others(number, score)
            return False
        before = self.urls.state(number)
        if before in (FETCHED, EXCLUDED):
            return False
        if before == QUEUED and self.frontier.score(number) == math.inf:
            return False  # a seed comes before every link, whatever links to it
        kept = score if math.isfinite(score) else None
        state = UNFOLLOWED if score == -math.inf else QUEUED
        if self.duplicates.stands_for(self.urls[number]) is not None:
            state = EXCLUDED
        self.urls.change(number, state, kept)
        if state == UNFOLLOWED:  # what waits is not worth a fetch any more
            self.frontier.remove(number)
        elif state == QUEUED and number not in self.in_flight:
            self.frontier.push(number, self.urls.host(number), score)
        return state == QUEUED and before != QUEUED

    def peek(self, now: float) -> int | None:
        """Return the best URL that may be fetched now; it stays where it is.

        Those before it that a part does not admit are deferred. None if there is none, or if so
        many were deferred that the event loop should not be held for more: `sifting` tells.
        """
        self.sifting = False
        for _ in range(_SIFTED):
            number = self.frontier.peek(now)
            if number is None or self.frontier.score(number) == math.inf:
                return number
            if all(part.admits(number) for part in self.parts):
                return number
            self.frontier.defer(number)
        self.sifting = True
        return None

    def strike_out(self, url: str) -> None:
        """Take a URL out of the frontier whose page has come under another URL."""
        number = self.urls.get(url)
        if number is None or number in self.in_flight or self.urls.state(number) != QUEUED:
            return
        self.frontier.remove(number)
        self.urls.change(number, EXCLUDED, self.urls.score(number))

    def add_seeds(self, urls: Sequence[str]) -> int:
        """Queue the start URLs that do not wait already; return how many those are."""
        new = []
        for url in filter(fits, urls):
            known = self.urls.get(url)
            if known is None or self.urls.state(known) == UNFOLLOWED:
                self.queue(self.urls.add(url, 0, None), math.inf)
                new.append(url)
        if new:
            self.note("seeds", f"{len(new)} start URLs")
        return len(new)

    def add_asked(self, url: str, depth: int, score: float) -> int:
        """Queue a URL that no page links to, and return its number; it is in the store at once."""
        number = self.urls.add(url, depth, None)
        self.queue(number, score)
        self.put(VisitRecord())
        return number

    # -- the store -------------------------------------------------------------------------

    @property
    def reloading(self) -> bool:
        """True while another thread takes up the crawl again: records wait, URLs are its alone."""
        return self._reloading

    @reloading.setter
    def reloading(self, now: bool) -> None:
        self._reloading = now
        self._put_held()

    def put(self, record: VisitRecord) -> None:
        """Have a record written, with all that has changed of URLs.

        While a visit is expanded and not recorded it waits: what the visit changed of URLs is to
        be written with its page and links.
        """
        self._held_records.append(record)
        self._put_held()

    def _put_held(self) -> None:
        while self._held_records and not self._reloading and self._unrecorded is None:
            record = self._held_records.pop(0)
            self.urls.flush(record)
            self.writer.put(record)

    def note(self, kind: str, detail: str = "") -> None:
        """Write an event down."""
        self.put(VisitRecord(events=[(self.fetched, kind, detail)]))

    def flush(self) -> None:
        """Wait until everything recorded so far is on disk."""
        self.writer.flush()


_CHUNK = 50_000  # URLs taken in at once
_NOTHING = np.zeros(0, np.int64), np.zeros(0)


def restore(crawl: CrawlState) -> None:
    """Load URLs, frontier, duplicates and evidence from the crawl's store.

    What was under way when the crawl stopped is queued, since only its page's record would have
    changed that. Links are taken in the order they were found, so that scores come out as they
    would have in a crawl that was never interrupted, to the last bit.

    Raises
    ------
    UserError
        The store is damaged: what it holds does not fit together.
    """
    history = History(crawl.store)
    with taking_in(crawl.store.where):
        crawl.urls.load_hosts(history.hosts())
        rows = history.urls()
        while chunk := list(itertools.islice(rows, _CHUNK)):
            crawl.urls.load(chunk)
        crawl.frontier.load(*crawl.urls.queued())
        _recall(crawl, history)


def reload(crawl: CrawlState) -> None:
    """Go on with a new strategy, and with judgements and scores that are in the store by now.

    The crawl has recorded all it knows, and fetches nothing meanwhile.
    """
    history = History(crawl.store)
    for row in history.urls():
        number, score, state = row.id, row.score, row.state
        kept, before = crawl.urls.score(number), crawl.urls.state(number)
        if (kept, before) == (score, state):
            continue
        crawl.urls.change(number, state, score)
        if state == QUEUED:
            first = np.inf if score is None else score
            crawl.frontier.push(number, crawl.urls.host(number), first)
        elif before == QUEUED:
            crawl.frontier.remove(number)
    crawl.reset()
    _recall(crawl, history)


def _recall(crawl: CrawlState, history: History) -> None:
    """Let everything but the frontier go through the crawl again."""
    for part in crawl.parts:
        part.reset()
    fetches = history.fetches()
    fetch = next(fetches, None)
    failed_in_a_row: list[str] = []
    while fetch is not None:
        following = next(fetches, None)
        last_of_seq = following is None or following.seq > fetch.seq
        if fetch.again:
            crawl.count_again(fetch.status)
        else:
            crawl.count(fetch.seq, fetch.relevance, fetch.status)
            if has_moved(fetch.status, fetch.error):
                crawl.redirects.add(fetch.url)
        urls, scores = _told(crawl.strategy, fetch, failed_in_a_row)
        if fetch.links:
            crawl.links = fetch.links[-1].id + 1
        repeats = fetch.duplicate_of is not None
        restored = RestoredFetch(fetch, repeats, last_of_seq, urls, scores)
        for part in crawl.parts:
            part.restore(restored)
        if fetch.digest is not None and not repeats:
            names = Duplicates.names(crawl.urls[fetch.url], fetch.canonical)
            crawl.duplicates.add(fetch.url, fetch.digest, names)
        fetch = following
    for _ in history.events(ASIDE, RENDERED):
        crawl.count_again(200)
    for part in crawl.parts:
        part.restored()


def _told(
    strategy: Strategy, fetch: StoredFetch, failed_in_a_row: list[str]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Tell a strategy of a fetch; one that it fails on is left out, unless many in a row are."""
    try:
        if not fetch.again:
            strategy.observe(fetch.url, fetch.relevance, fetch.duplicate_of)
        scores = recalled(strategy, fetch)
    except Exception as error:
        failed_in_a_row.append(fetch.name)
        if len(failed_in_a_row) >= FAILED_IN_A_ROW:
            raise
        logger.warning("%s is left out of the past: the strategy failed: %r", fetch.name, error)
        return _NOTHING
    if fetch.links:
        failed_in_a_row.clear()
    return scores


def recalled(
    strategy: Strategy, fetch: StoredFetch
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Let a strategy have the links of a fetch again; return the URLs and their scores."""
    if not fetch.links and fetch.memo is None:
        return _NOTHING
    scores = [-np.inf if link.score is None else link.score for link in fetch.links]
    return strategy.recall(
        RecalledPage(
            url=fetch.url,
            seq=fetch.seq,
            relevance=fetch.relevance,
            targets=np.array([link.target for link in fetch.links], dtype=np.int64),
            link_scores=np.array(scores),
            memo=fetch.memo,
        )
    )
