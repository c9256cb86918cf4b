"""What a crawl knows and has decided, redirects, and how it is restored from its store."""

from __future__ import annotations

import itertools
import logging
import math
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from focuscrawl.crawl.crawl_folder import FileControl
from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.part import Part, RestoredFetch
from focuscrawl.crawl.scope import Scope, has_allowed_length
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.crawl.visit import META_REFRESH, NOT_MODIFIED, PAGE_FAILED, RENDERED
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import MAX_URL
from focuscrawl.store import StoreWriter, VisitRecord
from focuscrawl.store.crawl_store import taking_in
from focuscrawl.store.history import History
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED
from focuscrawl.strategies import StoredPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.crawl.crawl_folder import CrawlFolder
    from focuscrawl.crawl.visit import PageVisit
    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.frontier import Frontier
    from focuscrawl.page import PageView
    from focuscrawl.store import CrawlStore
    from focuscrawl.store.history import StoredFetch
    from focuscrawl.strategies import Strategy
    from focuscrawl.webs.web_protocol import Web


logger = logging.getLogger(__name__)

P = TypeVar("P", bound=Part)

MAX_REDIRECTS = 20  # redirects in a row, as in browsers (WHATWG Fetch, HTTP-redirect fetch)
#: pages in a row that critic or strategy fail on: then it is not the pages, and the crawl ends
MAX_CONSECUTIVE_FAILURES = 10
BYPASSED = "aside"  # kind of the event that a request bypassed the frontier
_LONGEST_FAILURE = 300  # characters
_MAX_DEFERRED = 2000  # URLs that one look may defer
_CHUNK = 50_000  # URLs restored at once
_NOTHING = np.zeros(0, np.int64), np.zeros(0)


def refresh_target(view: PageView | None, longest: float) -> str | None:
    """Return where a page leads that shows another one in its place; None: it is a page itself.

    A page that refreshes soon is a redirect; one that loads itself again is not.

    Parameters
    ----------
    longest : seconds; a page that stays for as long, or longer, is a page. 0: every one is
    """
    if view is None or view.refresh in (None, view.url) or view.refresh_delay >= longest:
        return None
    return view.refresh


def is_redirect(status: int, error: str | None) -> bool:
    """Tell whether a stored fetch was a redirect, by its status and error."""
    return 300 <= status < 400 or (error or "").startswith(META_REFRESH)


class Redirects:
    """The URLs that answered with a redirect, and chains of them."""

    def __init__(self, urls: UrlTable) -> None:
        self._urls = urls
        self._moved: set[int] = set()

    def add(self, url_id: int) -> None:
        """Add a URL that redirected."""
        self._moved.add(url_id)

    def refusal_reason(self, url_id: int, location: str | None, target: str | None) -> str | None:
        """Add a redirect, and return why it is not followed; None if it is.

        Parameters
        ----------
        url_id : of the URL that redirects
        location : where to, None if that is missing or no URL
        target : the same among the URLs that may be fetched, None if it is not

        Notes
        -----
        A URL is fetched once, so a circle ends by itself; a chain of ever new URLs would come
        before all else until the budget is spent.
        """
        self.add(url_id)
        if location is None:
            return "redirect to nowhere"
        if not has_allowed_length(location):
            return f"redirect to nowhere: a URL of {len(location):,} characters"
        chain = [url_id]
        while (before := self._urls.referrer_id(chain[-1])) in self._moved and len(
            chain
        ) < MAX_REDIRECTS:
            assert before is not None
            chain.append(before)
        if target is not None and target in [self._urls[each] for each in chain]:
            return f"redirect loop: back to {target}"
        if target is not None and len(chain) >= MAX_REDIRECTS:
            return f"redirects without end: {MAX_REDIRECTS} in a row"
        return None


class CrawlState:
    """A crawl as its parts see it; `focuscrawl.crawl.Crawl` adds the loop.

    Every change is a record of the store, written as a whole or not at all.

    Parameters
    ----------
    critic, strategy, frontier, store, folder, web, config : see `open_crawl`
    within : URLs the crawl is confined to; None: no such limit
    urls, duplicates : of another kind, in a crawl in rounds; None: those of a crawl in a folder

    Attributes
    ----------
    scope : what it is confined to by its configuration
    parts : what takes part in it, in the order in which the loop calls them
    fetched : fetches recorded, those of earlier runs included
    reached : those of them with a page, or with the answer that it has not changed
    last_relevant : the last of them that was relevant
    links : links recorded
    overtaken : fetches during which a much better link waited for its host
    consecutive_failures : pages of this run, the last ones, that critic or strategy failed on
    any_judged : they did not fail on every page of this run
    in_flight : ids of the URLs that were given out, with the scores they had
    is_deferring : the last look at the frontier found only URLs to defer, and did not see all
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
        config: CrawlConfig,
        within: frozenset[str] | None = None,
        urls: UrlTable | None = None,
        duplicates: Duplicates | None = None,
    ) -> None:
        self.critic, self.strategy, self.frontier = critic, strategy, frontier
        self.store, self.folder, self.web, self.config = store, folder, web, config
        self._within = within
        self.scope = Scope(config)
        self.urls = UrlTable() if urls is None else urls
        self.duplicates = Duplicates() if duplicates is None else duplicates
        self.redirects = Redirects(self.urls)
        self.control = FileControl(folder.path)
        self.writer = StoreWriter(store)
        self.parts: list[Part] = []
        self.in_flight: dict[int, float] = {}
        self.is_deferring = False
        self._reloading = False
        self._unrecorded: int | None = None  # the URL whose visit is expanded and not recorded
        self._held_records: list[VisitRecord] = []
        self.consecutive_failures = 0
        self.any_judged = False
        self._failures: set[tuple[str, type[Exception]]] = set()  # of which a trace was shown
        self.reset()

    def reset(self) -> None:
        """Forget every fetch, but not the states of the URLs."""
        self.fetched, self.succeeded, self.last_relevant, self.links = 0, 0, 0, 0
        self.relevance_sum = 0.0
        self.overtaken = 0
        self._fetched_again, self._not_modified = 0, 0
        self.duplicates.clear()

    def part(self, kind: type[P]) -> P | None:
        """Return the part of a class; None: the crawl has none."""
        return next((part for part in self.parts if isinstance(part, kind)), None)

    # -- counts ----------------------------------------------------------------------------

    def count(self, seq: int, relevance: float, status: int) -> None:
        """Count a fetch."""
        self.fetched = seq
        self.succeeded += 200 <= status < 300 or status == NOT_MODIFIED
        self._not_modified += status == NOT_MODIFIED
        self.relevance_sum += relevance
        if relevance > RELEVANT:
            self.last_relevant = seq

    def log_failure(self, visit: PageVisit, who: str, error: Exception) -> None:
        """Record that the critic or the strategy failed on a page; may run in any thread.

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
            self.consecutive_failures += 1
        elif visit.digest is not None and visit.duplicate_id is None:
            self.consecutive_failures, self.any_judged = 0, True

    def count_refetch(self, status: int) -> None:
        """Count a fetch of a page that was fetched before."""
        self._fetched_again += 1
        self._not_modified += status == NOT_MODIFIED

    def count_bypass(self, url: str) -> None:
        """Count a request that bypassed the frontier: a fetch of the budget, and no page."""
        self.count_refetch(200)
        self.record_event(BYPASSED, url)

    @property
    def is_budget_exhausted(self) -> bool:
        """True if all that is left of the budget is in flight."""
        return 0 < self.config.budget <= self.budget_spent + len(self.in_flight)

    @property
    def is_at_capacity(self) -> bool:
        """True while as many URLs are in flight as may be."""
        return 0 < self.config.concurrency <= len(self.in_flight)

    @property
    def budget_left(self) -> float:
        """Fetches of the budget that were not started; inf: it has no limit."""
        if not self.config.budget:
            return math.inf
        return max(0.0, self.config.budget - self.budget_spent - len(self.in_flight))

    @property
    def harvest_rate(self) -> float:
        """Mean relevance of all fetches (methods 1); 0 before the first."""
        return self.relevance_sum / self.fetched if self.fetched else 0.0

    @property
    def priority_fidelity(self) -> float:
        """Share of the fetches of one of the best links known; 1 before the first."""
        return 1.0 - self.overtaken / max(self.fetched, 1)

    @property
    def budget_spent(self) -> int:
        """Fetches as they count against the budget: "not modified" costs less than one.

        Those that bypassed the frontier are among them.
        """
        saved = int(self._not_modified * (1.0 - self.config.not_modified_cost))
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
        web = self.web if self.config.closed else None
        known: Sequence[str | None] = urls if web is None else web.resolve(urls)
        within = self._within
        if within is not None:
            known = [url if url in within else None for url in known]
        return [url if url is not None and len(url) <= MAX_URL else None for url in known]

    def follow(self, urls: Sequence[str]) -> Sequence[str | None]:
        """Map URLs to those the crawl follows by itself: like `resolve`, and within its scope.

        What a project's own spider requests is its own choice.
        """
        found, admits = self.resolve(urls), self.scope.admits
        if self.scope.admits_all:
            return found
        return [url if url and admits(url) else None for url in found]

    def queue(self, url_id: int, score: float) -> bool:
        """Give a URL its new score, and a place in the frontier unless it has left it.

        Returns
        -------
        True if it did not wait before
        """
        if not self.urls.is_own(url_id):
            self.urls.set_foreign_score(url_id, score)
            return False
        before = self.urls.state(url_id)
        if before in (FETCHED, EXCLUDED):
            return False
        if before == QUEUED and self.frontier.score(url_id) == math.inf:
            return False  # a seed comes before every link, whatever links to it
        kept = score if math.isfinite(score) else None
        state = UNFOLLOWED if score == -math.inf else QUEUED
        if self.duplicates.find_by_url(self.urls[url_id]) is not None:
            state = EXCLUDED
        self.urls.set_state(url_id, state, kept)
        if state == UNFOLLOWED:  # what waits is not worth a fetch any more
            self.frontier.remove(url_id)
        elif state == QUEUED and url_id not in self.in_flight:
            self.frontier.push(url_id, self.urls.host_id(url_id), score)
        return state == QUEUED and before != QUEUED

    def peek(self, now: float) -> int | None:
        """Return the best URL that may be fetched now; it stays where it is.

        Those before it that a part does not admit are deferred. None if there is none, or if so
        many were deferred that the event loop should not be held for more: `is_deferring` tells.
        """
        self.is_deferring = False
        for _ in range(_MAX_DEFERRED):
            url_id = self.frontier.peek(now)
            if url_id is None or self.frontier.score(url_id) == math.inf:
                return url_id
            if all(part.admits(url_id) for part in self.parts):
                return url_id
            self.frontier.defer(url_id)
        self.is_deferring = True
        return None

    def exclude_queued(self, url: str) -> None:
        """Take a URL out of the frontier whose page was fetched under another URL."""
        url_id = self.urls.get(url)
        if url_id is None or url_id in self.in_flight or self.urls.state(url_id) != QUEUED:
            return
        self.frontier.remove(url_id)
        self.urls.set_state(url_id, EXCLUDED, self.urls.score(url_id))

    def add_seeds(self, urls: Sequence[str]) -> int:
        """Queue the start URLs that do not wait already; return how many there are."""
        new = []
        for url in filter(has_allowed_length, urls):
            known = self.urls.get(url)
            if known is None or self.urls.state(known) == UNFOLLOWED:
                self.queue(self.urls.add(url, 0, None), math.inf)
                new.append(url)
        if new:
            self.record_event("seeds", f"{len(new)} start URLs")
        return len(new)

    def add_requested(self, url: str, depth: int, score: float) -> int:
        """Queue a URL that no page links to, store it at once, and return its id."""
        url_id = self.urls.add(url, depth, None)
        self.queue(url_id, score)
        self.put(VisitRecord())
        return url_id

    # -- the store -------------------------------------------------------------------------

    @property
    def reloading(self) -> bool:
        """True while another thread restores the crawl: records wait, the URLs are its alone."""
        return self._reloading

    @reloading.setter
    def reloading(self, now: bool) -> None:
        self._reloading = now
        self._put_held()

    def put(self, record: VisitRecord) -> None:
        """Write a record, with all changes of URLs.

        It waits while a visit is expanded and not recorded: what that has changed of URLs is to be
        written with its page and links.
        """
        self._held_records.append(record)
        self._put_held()

    def _put_held(self) -> None:
        while self._held_records and not self._reloading and self._unrecorded is None:
            record = self._held_records.pop(0)
            self.urls.flush(record)
            self.writer.put(record)

    def record_event(self, kind: str, detail: str = "") -> None:
        """Record an event."""
        self.put(VisitRecord(events=[(self.fetched, kind, detail)]))

    def flush(self) -> None:
        """Wait until everything recorded so far is on disk."""
        self.writer.flush()


def restore(crawl: CrawlState) -> None:
    """Load URLs, frontier, duplicates and evidence from the crawl's store.

    What was in flight when the crawl stopped is queued. Links are taken in the order they were
    found, so that scores are those of a crawl that was never interrupted, to the last bit.

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
        _restore_fetches(crawl, history)


def reload(crawl: CrawlState) -> None:
    """Restore an open crawl with a new strategy and the judgements and scores now in the store.

    The crawl has recorded all it knows, and fetches nothing meanwhile.
    """
    history = History(crawl.store)
    for row in history.urls():
        url_id, score, state = row.id, row.score, row.state
        kept, before = crawl.urls.score(url_id), crawl.urls.state(url_id)
        if (kept, before) == (score, state):
            continue
        crawl.urls.set_state(url_id, state, score)
        if state == QUEUED:
            first = np.inf if score is None else score
            crawl.frontier.push(url_id, crawl.urls.host_id(url_id), first)
        elif before == QUEUED:
            crawl.frontier.remove(url_id)
    crawl.reset()
    _restore_fetches(crawl, history)


def _restore_fetches(crawl: CrawlState, history: History) -> None:
    # everything but the frontier
    for part in crawl.parts:
        part.reset()
    fetches = history.fetches()
    fetch = next(fetches, None)
    consecutive_failures: list[str] = []
    while fetch is not None:
        following = next(fetches, None)
        last_of_seq = following is None or following.seq > fetch.seq
        if fetch.again:
            crawl.count_refetch(fetch.status)
        else:
            crawl.count(fetch.seq, fetch.relevance, fetch.status)
            if is_redirect(fetch.status, fetch.error):
                crawl.redirects.add(fetch.url)
        urls, scores = _observe(crawl.strategy, fetch, consecutive_failures)
        if fetch.links:
            crawl.links = fetch.links[-1].id + 1
        repeats = fetch.duplicate_of is not None
        restored = RestoredFetch(fetch, repeats, last_of_seq, urls, scores)
        for part in crawl.parts:
            part.restore(restored)
        if fetch.digest is not None and not repeats:
            names = Duplicates.known_urls(crawl.urls[fetch.url], fetch.canonical)
            crawl.duplicates.add(fetch.url, fetch.digest, names)
        fetch = following
    for _ in history.events(BYPASSED, RENDERED):
        crawl.count_refetch(200)
    for part in crawl.parts:
        part.on_restored()


def _observe(
    strategy: Strategy, fetch: StoredFetch, consecutive_failures: list[str]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Report a stored fetch to a strategy; one that it fails on is skipped, unless many are."""
    try:
        if not fetch.again:
            strategy.observe(fetch.url, fetch.relevance, fetch.duplicate_of)
        scores = restore_links(strategy, fetch)
    except Exception as error:
        consecutive_failures.append(fetch.name)
        if len(consecutive_failures) >= MAX_CONSECUTIVE_FAILURES:
            raise
        logger.warning("%s is left out of the past: the strategy failed: %r", fetch.name, error)
        return _NOTHING
    if fetch.links:
        consecutive_failures.clear()
    return scores


def restore_links(
    strategy: Strategy, fetch: StoredFetch
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Restore the links of a fetch in a strategy; return the URLs and their scores."""
    if not fetch.links and fetch.memo is None:
        return _NOTHING
    scores = [-np.inf if link.score is None else link.score for link in fetch.links]
    return strategy.restore_page(
        StoredPage(
            url=fetch.url,
            seq=fetch.seq,
            relevance=fetch.relevance,
            targets=np.array([link.target for link in fetch.links], dtype=np.int64),
            link_scores=np.array(scores),
            memo=fetch.memo,
        )
    )
