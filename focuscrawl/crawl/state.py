"""State of a crawl (counts, URLs, frontier, records), and restoring it from the store."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Sequence
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
from focuscrawl.foundation.urls import MAX_URL_LENGTH
from focuscrawl.store import StoreWriter, VisitRecord
from focuscrawl.store.crawl_store import reporting_damage
from focuscrawl.store.history import History
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED
from focuscrawl.strategies import StoredPage

if TYPE_CHECKING:
    from focuscrawl.crawl.crawl_folder import CrawlFolder
    from focuscrawl.crawl.visit import PageVisit
    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.frontier import Frontier
    from focuscrawl.store import CrawlStore
    from focuscrawl.store.history import StoredFetch
    from focuscrawl.strategies import Strategy
    from focuscrawl.webs.web_protocol import Web


logger = logging.getLogger(__name__)

P = TypeVar("P", bound=Part)

MAX_REDIRECTS = 20  # in a row, as in browsers (WHATWG Fetch, HTTP-redirect fetch)
#: pages in a row with an error of critic or strategy; after these the crawl stops
MAX_CONSECUTIVE_FAILURES = 10
BYPASSED = "aside"  # kind of the event that a request bypassed the frontier
_MAX_FAILURE_LENGTH = 300  # characters
_MAX_DISCOUNTED = 2000  # URLs discounted by one call of `CrawlState.peek`
_CHUNK = 50_000  # URLs restored at once
_NO_SCORES = np.zeros(0, np.int64), np.zeros(0)


def refresh_target(visit: PageVisit, longest: float) -> str | None:
    """Return the target of a refresh that counts as a redirect, or None.

    The HTTP header ``Refresh`` has priority over ``<meta http-equiv=refresh>``. A page that
    refreshes to its own URL does not count as a redirect.

    Parameters
    ----------
    longest : float
        Refresh delays below this many seconds count as redirects; 0 for none.
    """
    view, fields = visit.view, visit.download.header_links
    target, delay = fields.refresh, fields.refresh_delay
    if target is None and view is not None:
        target, delay = view.refresh, view.refresh_delay
    if not 200 <= visit.status < 300 or delay >= longest or target == visit.url:
        return None
    return target


def is_redirect(status: int, error: str | None) -> bool:
    """Tell whether a stored fetch was a redirect, by its status and error."""
    moved = 300 <= status < 400 and status != NOT_MODIFIED
    return moved or (error or "").startswith(META_REFRESH)


class Redirects:
    """URLs that redirect to another URL, and the chains of redirects between URLs."""

    def __init__(self, urls: UrlTable) -> None:
        self._urls = urls
        self._moved: set[int] = set()

    def add(self, url_id: int) -> None:
        """Record that a URL redirects to another URL."""
        self._moved.add(url_id)

    def leads_back(self, url_id: int, target: str) -> bool:
        """Return whether the URL was reached by redirects from `target`."""
        return target in [self._urls[each] for each in self._chain(url_id)[1:]]

    def _chain(self, url_id: int) -> list[int]:
        """Return a URL and the URLs before it in its chain of redirects, the last first."""
        chain = [url_id]
        while (before := self._urls.referrer_id(chain[-1])) in self._moved and len(
            chain
        ) < MAX_REDIRECTS:
            assert before is not None
            chain.append(before)
        return chain

    def refusal_reason(self, url_id: int, location: str | None, target: str | None) -> str | None:
        """Record a redirect; return the reason for not following it, or None if it is followed.

        Chains of redirects are limited, because redirects to ever new URLs would take precedence
        over all links until the budget is spent. The argument `location` is the target as sent by
        the server, or None if the target is missing or invalid. The argument `target` is None if
        the crawl may not fetch the target.
        """
        self.add(url_id)
        if location is None:
            return "redirect without target"
        if not has_allowed_length(location):
            return f"redirect without target: a URL of {len(location):,} characters"
        chain = self._chain(url_id)
        if target is not None and target in [self._urls[each] for each in chain]:
            return f"redirect loop: back to {target}"
        if target is not None and len(chain) >= MAX_REDIRECTS:
            return f"too many redirects: {MAX_REDIRECTS} in a row"
        return None


class CrawlState:
    """State of a crawl, for the crawl's parts; the class `focuscrawl.crawl.Crawl` adds the loop.

    Every change of the state is written to the store in one transaction.

    Parameters
    ----------
    within : frozenset of str or None
        URLs to which the crawl is restricted; None for no restriction.
    urls, duplicates : UrlTable and Duplicates, or None
        Special tables of a crawl in rounds; None for those of a crawl in a folder.

    Attributes
    ----------
    parts : list of Part
        Parts in the order in which the loop calls them.
    fetched, links : int
        Recorded fetches and links, including those of earlier runs.
    succeeded : int
        Fetches with a status of 2xx or 304.
    last_relevant : int
        Number of the last relevant fetch.
    overtaken : int
        Fetches during which a much better link waited for its host.
    consecutive_failures : int
        Last pages of this run, in a row, for which critic or strategy raised an error.
    any_judged : bool
        True if critic and strategy processed at least one page of this run without an error.
    in_flight : dict of int to float
        Ids of the URLs that are being fetched, with their scores.
    is_discounting : bool
        True if the last call of `peek` only discounted URLs, and has to be repeated.
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
        self.is_discounting = False
        self._reloading = False
        self._unrecorded: int | None = None  # URL of the visit that is expanded and not recorded
        self._held_records: list[VisitRecord] = []
        self.consecutive_failures = 0
        self.any_judged = False
        self._logged_failures: set[tuple[str, type[Exception]]] = set()  # with a traceback
        self.reset()

    def reset(self) -> None:
        """Reset all counts of the crawl; the states of URLs stay as they are."""
        self.fetched, self.succeeded, self.last_relevant, self.links = 0, 0, 0, 0
        self.relevance_sum = 0.0
        self.overtaken = 0
        self._fetched_again, self._not_modified = 0, 0
        self.duplicates.clear()

    def part(self, kind: type[P]) -> P | None:
        """Return the `Part` of the crawl that is an instance of a given class, or None."""
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
        """Log and record an error of ``critic`` or ``strategy`` for a page, from any thread."""
        visit.failure = self.log_error(visit.url, who, error)
        visit.events.append((PAGE_FAILED, f"{visit.url}: {visit.failure}"))

    def log_error(self, url: str, who: str, error: Exception) -> str:
        """Log an error of ``critic`` or ``strategy`` for a URL; return the text of the error."""
        failure = f"{who} failed: {type(error).__name__}: {error}"[:_MAX_FAILURE_LENGTH]
        kind = who, type(error)
        logged = kind in self._logged_failures or isinstance(error, UserError)
        self._logged_failures.add(kind)
        exc_info = None if logged else error
        logger.error("%s: %s; the crawl continues", url, failure, exc_info=exc_info)
        return failure

    def count_failure(self, visit: PageVisit) -> None:
        """Count consecutive errors of critic and strategy; a judged page resets the count."""
        if visit.failure is not None:
            self.consecutive_failures += 1
        elif visit.digest is not None and visit.duplicate_id is None:
            self.consecutive_failures, self.any_judged = 0, True

    def count_refetch(self, status: int) -> None:
        """Count a fetch of a page that the crawl had fetched before."""
        self._fetched_again += 1
        self._not_modified += status == NOT_MODIFIED

    def count_bypass(self, url: str) -> None:
        """Count a request that bypassed the frontier as spent budget."""
        self.count_refetch(200)
        self.record_event(BYPASSED, url)

    @property
    def is_budget_exhausted(self) -> bool:
        """True if the fetches in flight will use up the rest of the budget."""
        return 0 < self.config.budget <= self.budget_spent + len(self.in_flight)

    @property
    def is_at_capacity(self) -> bool:
        """True if as many URLs are in flight as ``CONCURRENT_REQUESTS`` allows."""
        return 0 < self.config.concurrency <= len(self.in_flight)

    @property
    def budget_left(self) -> float:
        """Number of fetches that may still start within the budget; inf if there is no budget."""
        if not self.config.budget:
            return math.inf
        return max(0.0, self.config.budget - self.budget_spent - len(self.in_flight))

    @property
    def harvest_rate(self) -> float:
        """Mean relevance of all fetches (methods.md 1); 0 before the first fetch."""
        return self.relevance_sum / self.fetched if self.fetched else 0.0

    @property
    def priority_fidelity(self) -> float:
        """Share of fetches while no link with a much higher score was held up by a busy host."""
        return 1.0 - self.overtaken / max(self.fetched, 1)

    @property
    def budget_spent(self) -> int:
        """Fetches counted against the budget; "not modified" responses count less than others.

        Requests that bypass the frontier also count against the budget.
        """
        saved = int(self._not_modified * (1.0 - self.config.not_modified_cost))
        return self.fetched + self._fetched_again - saved

    @property
    def model_version(self) -> int:
        """Version of the model that scores links; 0 if the strategy does not learn."""
        return self.strategy.model_version

    # -- URLs ------------------------------------------------------------------------------

    def resolve(self, urls: Sequence[str]) -> Sequence[str | None]:
        """Return for each URL the URL to fetch, or None if the crawl may not fetch the URL.

        The crawl does not fetch URLs that are too long. A replay without access to the live Web
        may fetch recorded URLs only.
        """
        web = self.web if self.config.closed else None
        known: Sequence[str | None] = urls if web is None else web.resolve(urls)
        within = self._within
        if within is not None:
            known = [url if url in within else None for url in known]
        return [url if url is not None and len(url) <= MAX_URL_LENGTH else None for url in known]

    def follow(self, urls: Sequence[str]) -> Sequence[str | None]:
        """Like `resolve`, but also return None for each URL outside the crawl's scope.

        The scope does not restrict requests of a project's own spider.
        """
        found, admits = self.resolve(urls), self.scope.admits
        if self.scope.admits_all:
            return found
        return [url if url and admits(url) else None for url in found]

    def queue(self, url_id: int, score: float) -> bool:
        """Set the score of a URL; queue the URL unless it was already fetched or excluded.

        Returns
        -------
        bool
            True if the URL was not queued before.
        """
        if not self.urls.is_own(url_id):
            self.urls.set_foreign_score(url_id, score)
            return False
        before = self.urls.state(url_id)
        if before in (FETCHED, EXCLUDED):
            return False
        if before == QUEUED and self.frontier.score(url_id) == math.inf:
            return False  # keep the score of a start page
        kept = score if math.isfinite(score) else None
        state = UNFOLLOWED if score == -math.inf else QUEUED
        self.urls.set_state(url_id, state, kept)
        if state == UNFOLLOWED:  # it may be queued with an earlier score
            self.frontier.remove(url_id)
        elif state == QUEUED and url_id not in self.in_flight:
            self.frontier.push(url_id, self.urls.host_id(url_id), score)
        return state == QUEUED and before != QUEUED

    def peek(self, now: float) -> int | None:
        """Return the best URL that may be fetched now, without removing it from the frontier.

        The method halves the scores of the best URLs as often as the parts request
        (`Part.halvings`). The method returns None if the frontier is empty, or after 2,000
        discounted URLs, so that the event loop is not blocked; see `is_discounting`.
        """
        self.is_discounting = False
        for _ in range(_MAX_DISCOUNTED):
            url_id = self.frontier.peek(now)
            if url_id is None or self.frontier.score(url_id) == math.inf:
                return url_id
            if not self.discount(url_id):
                return url_id
        self.is_discounting = True
        return None

    def discount(self, url_id: int) -> bool:
        """Halve the score of a URL as often as the parts request; return True if it changes."""
        return self.frontier.discount(url_id, sum(part.halvings(url_id) for part in self.parts))

    def add_seeds(self, urls: Sequence[str]) -> int:
        """Queue the start pages that are not queued yet, and return their number."""
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
        """Queue a URL to which no page links, store the URL at once, and return its id."""
        url_id = self.urls.add(url, depth, None)
        self.queue(url_id, score)
        self.put(VisitRecord())
        return url_id

    # -- the store -------------------------------------------------------------------------

    @property
    def reloading(self) -> bool:
        """True while a background thread restores the crawl, including URLs and frontier."""
        return self._reloading

    @reloading.setter
    def reloading(self, now: bool) -> None:
        self._reloading = now
        self._write_held()

    def put(self, record: VisitRecord) -> None:
        """Write a record to the store, together with all pending changes of URLs.

        While a page is expanded and not yet recorded, the method holds back the record. The
        expansion's changes of URLs must be written together with the page and its links.
        """
        self._held_records.append(record)
        self._write_held()

    def _write_held(self) -> None:
        while self._held_records and not self._reloading and self._unrecorded is None:
            record = self._held_records.pop(0)
            self.urls.flush(record)
            self.writer.put(record)

    def record_event(self, kind: str, detail: str = "") -> None:
        """Record an event."""
        self.put(VisitRecord(events=[(self.fetched, kind, detail)]))

    def flush(self) -> None:
        """Wait until all records are on disk."""
        self.writer.flush()


def restore(crawl: CrawlState) -> None:
    """Restore URLs, frontier, duplicates and strategy from the store (database) of a crawl.

    URLs that were in flight when the crawl stopped are queued again. Links are restored in their
    original order, so that all scores exactly equal those of an uninterrupted crawl.

    Raises
    ------
    UserError
        The store is damaged.
    """
    history = History(crawl.store)
    with reporting_damage(crawl.store.location):
        crawl.urls.load_hosts(history.hosts())
        rows = history.urls()
        while chunk := list(itertools.islice(rows, _CHUNK)):
            crawl.urls.load(chunk)
        crawl.frontier.load(*crawl.urls.queued())
        _restore_fetches(crawl, history)


def reload(crawl: CrawlState) -> None:
    """Restore an open crawl after the judgements and scores in its store were replaced.

    All records must be on disk, and no fetch may be in flight.
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
    # restores everything except the frontier
    for part in crawl.parts:
        part.reset()
    fetches = history.fetches()
    fetch = next(fetches, None)
    consecutive_failures: list[str] = []
    while fetch is not None:
        following = next(fetches, None)
        last_of_seq = following is None or following.seq > fetch.seq
        if fetch.is_revisit:
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
        if fetch.duplicate_of is not None:
            crawl.duplicates.add_copy(fetch.url, fetch.duplicate_of)
        elif fetch.digest is not None:
            names = Duplicates.known_urls(crawl.urls[fetch.url], fetch.canonical)
            crawl.duplicates.add(fetch.url, fetch.digest, names, fetch.signature)
        fetch = following
    for _ in history.events(BYPASSED, RENDERED):
        crawl.count_refetch(200)
    for part in crawl.parts:
        part.on_restored()


def _observe(
    strategy: Strategy, fetch: StoredFetch, consecutive_failures: list[str]
) -> tuple[Ints, Floats]:
    """Report a stored fetch to a strategy; skip single fetches for which the strategy fails."""
    try:
        if not fetch.is_revisit:
            strategy.observe(fetch.url, fetch.relevance, fetch.duplicate_of)
        scores = restore_links(strategy, fetch)
    except Exception as error:
        consecutive_failures.append(fetch.url_text)
        if len(consecutive_failures) >= MAX_CONSECUTIVE_FAILURES:
            raise
        logger.warning("%s is not restored: the strategy failed: %r", fetch.url_text, error)
        return _NO_SCORES
    if fetch.links:
        consecutive_failures.clear()
    return scores


def restore_links(strategy: Strategy, fetch: StoredFetch) -> tuple[Ints, Floats]:
    """Pass the stored links of a fetch to a strategy; return the ids and scores of the targets."""
    if not fetch.links and fetch.memo is None:
        return _NO_SCORES
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
