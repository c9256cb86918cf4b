"""The crawl loop: chooses the next URL and processes responses, without Scrapy and network."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from focuscrawl.crawl.crawl_folder import CrawlPhase
from focuscrawl.crawl.discovery import Discovery
from focuscrawl.crawl.distilling import HubRevisits
from focuscrawl.crawl.exploration import Exploration
from focuscrawl.crawl.first_visits import STRATEGY, FirstVisits, queue_links, score_links
from focuscrawl.crawl.part import POLL_INTERVAL
from focuscrawl.crawl.state import MAX_CONSECUTIVE_FAILURES, CrawlState
from focuscrawl.crawl.stopping import Completeness
from focuscrawl.crawl.visit import TOO_HARD, UNREADABLE, Download, Fetch, PageVisit
from focuscrawl.crawl.waiting import PriorityFidelity
from focuscrawl.foundation.urls import resolve_header
from focuscrawl.page import (
    ParseCost,
    ParseLimitError,
    is_html,
    parse_page,
    shared_parser,
)
from focuscrawl.page.documents import PDF, UnreadableError, is_pdf, url_list_kind
from focuscrawl.page.metadata import read_header_links
from focuscrawl.page.robots_rules import read_robots_rules

if TYPE_CHECKING:
    from focuscrawl.crawl.first_visits import ScoredLinks
    from focuscrawl.crawl.revisit_policy import KnownPages
    from focuscrawl.crawl.visit import Visit
    from focuscrawl.page import PageView
    from focuscrawl.strategies import JudgedPage
    from focuscrawl.webs.web_protocol import Answer


logger = logging.getLogger(__name__)

REPLAY_TIME = 0.0  # time passed to `Crawl.next` in a replay, which has no clock
_WAIT = 0.001  # seconds between two calls of `Crawl.next` in a replay
# media types of bodies that can be PDF, and of files that are surely no site map and no feed
_PDF = ("application/pdf", "application/x-pdf", "application/octet-stream", "binary/octet-stream")
_MEDIA = ("image/", "audio/", "video/", "font/")


class Crawl(CrawlState):
    """A focused crawl: chooses the URLs to fetch, processes responses, and calls the parts.

    The methods `judge`, `expand` and `record` process a response one after the other; the method
    `visit` calls all three. Callers may change the visit object between the calls of `judge`,
    `expand` and `record`.

    The argument ``known`` has the pages that earlier crawls fetched. The arguments ``**others``
    are passed to `CrawlState`.
    """

    def __init__(self, *, known: KnownPages | None = None, **others: Any) -> None:
        super().__init__(**others)
        self._known = known
        self._first_visits = FirstVisits(self, None if known is None else known.relevance)
        self._halted = False
        self._scoring: int | None = None  # id of the URL whose links are being scored
        self._wait: float | None = None  # seconds that a part asked for in the last `next`

    def start(self, seeds: Sequence[str]) -> None:
        """Start a run of the crawl, and queue new start pages."""
        self.record_event("start", self.config.describe())
        new = self.add_seeds(seeds)
        completeness = self.part(Completeness)
        if completeness is not None and new:
            completeness.add_start_pages(new)
        self.folder.set_phase(CrawlPhase.CRAWLING)

    def set_budget(self, budget: int) -> None:
        """Set the budget: the maximum number of fetches in all runs of the crawl (0: no limit)."""
        self.config = self.config.with_values(budget=budget)
        self.record_event("budget", str(budget))

    def close(self, reason: str) -> None:
        """Record the stop reason, and wait until all records are on disk."""
        self.folder.set_phase(CrawlPhase.STOPPING)
        for part in self.parts:
            part.close()
        self.record_event("stop", reason)
        self._unrecorded = None
        self._write_held()
        self.writer.close()
        for part in self.parts:
            part.release()
        self.store.close()
        self.folder.release()

    # -- the next URL ----------------------------------------------------------------------

    @property
    def store_failure(self) -> BaseException | None:
        """Error of the background thread that writes the store, or None."""
        return self.writer.failure

    @property
    def stop_reason(self) -> str | None:
        """Reason to stop the crawl now, or None."""
        if self.store_failure is not None:
            return "store_error"
        if self._halted:
            return "error"
        if self.reloading:  # the counts are incomplete
            return None
        for part in self.parts:
            reason = part.stop_reason()
            if reason is not None:
                return reason
        return None

    @property
    def is_unfinished(self) -> bool:
        """True if URLs remain to be fetched when the fetches in progress have finished."""
        return self.stop_reason is None and (self.reloading or len(self.frontier) > 0)

    @property
    def is_waiting(self) -> bool:
        """True while the crawl waits for training, the store or other background work.

        The property is False while the crawl only waits for a host, because the frontier knows
        when a host is ready.
        """
        waits = self._wait is not None and self._wait < math.inf
        busy = self._scoring is not None or self.reloading or self.is_discounting
        return waits or busy or self.writer.is_full

    @property
    def wait_time(self) -> float:
        """Seconds to wait before the next call of `Crawl.next` while `is_waiting` is True."""
        return POLL_INTERVAL if self._wait is None else self._wait

    def next(self, now: float) -> Fetch | None:
        """Return the next URL to fetch at the time ``now``, or None.

        The next URL is the one with the best score, or one that `Exploration` chooses. It counts
        as in flight until its visit is recorded or `requeue` is called.
        """
        self._wait = None
        if not self.poll(now) or self.stop_reason is not None or self._has_to_wait(now):
            return None
        url_id = best = self.peek(now)
        exploration, fidelity = self.part(Exploration), self.part(PriorityFidelity)
        if best is not None and exploration is not None:
            url_id = exploration.choose(best, now)
        if best is None or url_id is None:
            return None
        self.frontier.take(url_id, now)
        self.in_flight[url_id] = self.frontier.score(url_id)
        if fidelity is not None:
            fidelity.compare(url_id, best)
        return self._fetch(url_id)

    def poll(self, now: float) -> bool:
        """Apply finished background work; return False if no fetch may start at present."""
        if self._scoring is not None:  # a background thread may be using the strategy
            return False
        for part in self.parts:
            try:
                if part.poll(now):
                    return False
            except Exception:
                logger.exception("%s failed", type(part).__name__)
                self._halted = True
                return False
        return True

    def _has_to_wait(self, now: float) -> bool:
        waits = [seconds for part in self.parts if (seconds := part.wait(now)) is not None]
        self._wait = min(waits, default=None)
        return self.is_at_capacity or self.writer.is_full or self._wait is not None

    def _fetch(self, url_id: int) -> Fetch:
        return Fetch(
            id=url_id,
            url=self.urls[url_id],
            host=self.urls.host_name(url_id),
            depth=self.urls.depth(url_id),
            score=self.urls.score(url_id),
            referrer=self.urls.referrer(url_id),
            is_refetch=self._processor(url_id) is not self._first_visits,
        )

    def score_at_request(self, url_id: int) -> float:
        """Return the present score of a URL in flight; start pages and redirect targets have inf.

        If the strategy fails, the method returns the score in the frontier.
        """
        score = self.in_flight[url_id]
        if score == math.inf:
            return score
        try:
            present = float(self.strategy.score_at_request(url_id, score))
            if not math.isfinite(present):
                raise ValueError(f"score_at_request returned {present}, which is not a number")
        except Exception as error:
            self.log_error(self.urls[url_id], STRATEGY, error)
            return score
        return present

    def requeue(self, url_id: int, now: float, *, tried: bool = False) -> None:
        """Put a URL in flight back into the queue; ``tried`` tells that a request has failed."""
        score = self.in_flight.pop(url_id)
        if tried:
            score = self.strategy.score_after_failure(url_id, score)
        if self._scoring == url_id:
            self._scoring = None
        if self._unrecorded == url_id:
            self._unrecorded = None
            self._write_held()
        self.frontier.release(url_id, now)
        if self.urls.is_own(url_id):
            self.frontier.push(url_id, self.urls.host_id(url_id), score)

    def halt(self, url_id: int | None, now: float) -> None:
        """Stop the crawl after an error, and put the URL of the visit back into the queue.

        The method is called after errors of a feed export, a part, the store or the recording,
        because such errors would also occur for the next page. The method `CrawlState.log_failure`
        handles errors of the critic and of the strategy.

        Parameters
        ----------
        url_id : int or None
            The URL; None if the caller puts the URL back into the queue.
        """
        self._halted = True
        if url_id in self.in_flight:
            self.requeue(url_id, now)

    # -- answers -------------------------------------------------------------------

    def start_visit(self, url_id: int, download: Download) -> PageVisit:
        """Create the visit (record of a fetch) of a URL in flight from its response."""
        score = self.in_flight[url_id]
        return PageVisit(self._fetch(url_id), None if score == math.inf else score, download)

    def start_failed_visit(self, url_id: int, error: str) -> PageVisit:
        """Create the visit (record of a fetch) of a URL whose request got no response."""
        visit = self.start_visit(url_id, Download(status=0))
        visit.error = error
        return visit

    @staticmethod
    def is_page(visit: PageVisit) -> bool:
        """Tell whether a response is an HTML page."""
        download = visit.download
        return 200 <= download.status < 300 and is_html(download.content_type, download.body)

    def document_kind(self, visit: PageVisit) -> str | None:
        """Return the kind of a response that is a PDF, site map or feed; None for others."""
        download = visit.download
        if not 200 <= download.status < 300:
            return None
        if self.config.pdf and is_pdf(download.body):
            return PDF
        if self._can_be_site_map_or_feed(visit.url_id, download.content_type):
            return url_list_kind(download.body)
        return None

    def can_read(self, url_id: int, media_type: str) -> bool:
        """Tell whether the crawl can use a URL's response with a media type other than HTML."""
        if self.config.pdf and media_type in _PDF:
            return True
        is_media = media_type.startswith(_MEDIA)
        return not is_media and self._can_be_site_map_or_feed(url_id, media_type)

    def _can_be_site_map_or_feed(self, url_id: int, media_type: str | None) -> bool:
        discovery = self.part(Discovery)
        return discovery is not None and discovery.can_be_site_map_or_feed(url_id, media_type)

    def add_site_maps(self, origin: str, site_maps: Iterable[str]) -> None:
        """Pass site maps from the robots.txt of an origin (``http://host``) to `Discovery`."""
        discovery = self.part(Discovery)
        if discovery is not None:
            discovery.add_site_maps(origin, site_maps)

    def parse(self, visit: PageVisit, most: ParseCost = ParseCost.UNBOUNDED) -> PageView | None:
        """Parse a response, in any thread; return None if the crawl does not use its media type.

        Raises
        ------
        ParseLimitError
            Parsing may take more than the effort ``most``, and did not start; or parsing without
            a bound took too long.
        """
        kind = self.document_kind(visit)
        if kind is not None:
            self.read(visit, kind, shared_parser().parse_document)
        elif self.is_page(visit):
            download = visit.download
            known: dict[str, Any] = {
                "encoding": download.encoding,
                "robots": download.robots,
                "references": download.header_links.references,
                "agent": self.config.agent,
            }
            if most < ParseCost.UNBOUNDED:
                visit.view = parse_page(download.body, visit.url, **known, max_cost=most)
            else:
                visit.view = shared_parser().parse(download.body, visit.url, **known)
        return visit.view

    def read(
        self, visit: PageVisit, kind: str, parse: Callable[[bytes, str, str], PageView]
    ) -> None:
        """Parse a response by a function such as `focuscrawl.page.documents.parse_document`."""
        try:
            visit.view = parse(visit.download.body, visit.url, kind)
        except UnreadableError:
            visit.error = UNREADABLE
            return
        if kind == PDF:  # site maps and feeds are no pages: they are read for their URLs
            noindex, nofollow = read_robots_rules(visit.download.robots, self.config.agent)
            visit.view = replace(visit.view, noindex=noindex, nofollow=nofollow)

    def judge(self, visit: PageVisit) -> None:
        """Classify a response as page, redirect or error, and let the critic judge the page."""
        self._processor(visit.url_id).judge(visit)

    def expand(self, visit: PageVisit) -> None:
        """Report the page to the strategy, score the page's links, and queue the link targets.

        After `expand`, the relevance of the visit is final. The caller must record a visit before
        the next visit is expanded, so that the strategy receives the fetches in the recorded
        order.

        Raises
        ------
        ValueError
            The relevance is not between 0 and 1.
        """
        page = self.start_expansion(visit)
        if page is not None:
            scored = self.score(visit, page)
            for _ in self.finish_expansion(visit, page, scored):
                pass

    def start_expansion(self, visit: PageVisit) -> JudgedPage | None:
        """Run the first step of `expand`; return the page if its links have to be scored.

        The second step of `expand` is `score`, which is slow for many links and may run in any
        thread. The last step of `expand` is `finish_expansion`. Until the last step of `expand`,
        `Crawl.next` returns None, and no other page may be expanded.

        Raises
        ------
        ValueError
            See `expand`.
        """
        if not 0.0 <= visit.relevance <= 1.0:
            raise ValueError(
                f"relevance {visit.relevance} of {visit.url} is not between 0 and 1: correct the "
                "pipeline or critic that sets the relevance"
            )
        visit.final_relevance = visit.relevance
        self._unrecorded = visit.url_id
        page = self._processor(visit.url_id).start_expansion(visit)
        self._scoring = None if page is None else visit.url_id
        return page

    def score(self, visit: PageVisit, page: JudgedPage) -> ScoredLinks | None:
        """Return the strategy's scores of the links of a page, or None if the strategy fails."""
        try:
            return score_links(self.strategy, page)
        except Exception as error:
            self.log_failure(visit, STRATEGY, error)
            return None

    def finish_expansion(
        self, visit: PageVisit, page: JudgedPage, scored: ScoredLinks | None
    ) -> Iterator[None]:
        """Queue the targets of the scored links; each step of the iterator queues some of them.

        No link of a page is followed if the strategy raised an error for the page.
        """
        if scored is None:
            visit.dropped = visit.links
        else:
            yield from queue_links(self, visit, page, scored)
        self._scoring = None

    def record(self, visit: PageVisit, now: float) -> Visit:
        """Record all changes caused by a visit in one transaction; the URL is no longer in flight.

        If `expand` was not called for a visit, the links of its page are not followed.
        """
        processor = self._processor(visit.url_id)
        if visit.excluded is None:
            if visit.final_relevance is None:
                visit.view = None
                self.expand(visit)
            assert visit.final_relevance is not None
            visit.relevance = visit.final_relevance
        if self._unrecorded == visit.url_id:
            self._unrecorded = None
        recorded = processor.record(visit, now)
        self.count_failure(visit)
        self._halted = self._halted or self.consecutive_failures >= MAX_CONSECUTIVE_FAILURES
        del self.in_flight[visit.url_id]
        self._write_held()
        if visit.excluded is None and not visit.is_refetch:
            for part in self.parts:
                part.on_recorded(visit)
        return recorded

    def visit(self, visit: PageVisit, now: float) -> Visit:
        """Judge the page of a visit, queue the page's links, and record the visit."""
        self.judge(visit)
        self.expand(visit)
        return self.record(visit, now)

    def record_failed(self, url_id: int, error: str, now: float) -> Visit:
        """Record a fetch that got no response."""
        return self.record(self.start_failed_visit(url_id, error), now)

    def conditional_headers(self, url_id: int) -> dict[str, str]:
        """Return the header fields of a conditional request for a known page [RFC 9110, 13.1]."""
        hubs = self.part(HubRevisits)
        fields = {} if hubs is None else hubs.conditional_headers(url_id)
        if not fields and self._known is not None:
            fields = self._known.conditional_headers(url_id)
        return fields

    def _processor(self, url_id: int) -> FirstVisits | HubRevisits:
        hubs = self.part(HubRevisits)
        return hubs if hubs is not None and hubs.is_revisit(url_id) else self._first_visits


def replay(crawl: Crawl) -> None:
    """Run a crawl of a recording until a stop condition holds, and close the crawl."""
    with threadpool_limits(1, user_api="blas"):  # as in the process of ``scrapy crawl focused``
        while True:
            fetch = crawl.next(REPLAY_TIME)
            if fetch is not None:
                process_answer(crawl, fetch, fetch_answer(crawl, fetch))
            elif crawl.stop_reason is not None:
                crawl.close(crawl.stop_reason)
                return
            else:
                time.sleep(_WAIT)


def fetch_answer(crawl: Crawl, fetch: Fetch) -> Answer | None:
    """Return the recorded response for a URL, or None."""
    assert crawl.web is not None
    return crawl.web.fetch(fetch.url)


def process_answer(crawl: Crawl, fetch: Fetch, answer: Answer | None) -> Visit:
    """Process a recorded response as `Crawl.visit` does; None (no response) is status 404."""
    if answer is not None and answer.too_large:
        visit = crawl.start_failed_visit(fetch.id, "too large: the recorded body")
    elif answer is not None and answer.failure:
        visit = crawl.start_failed_visit(fetch.id, f"not in the archive: {answer.failure}")
    else:
        download = Download(404) if answer is None else _download(fetch, answer)
        visit = crawl.start_visit(fetch.id, download)
        try:
            crawl.parse(visit)
        except ParseLimitError:
            visit.error = TOO_HARD
    return crawl.visit(visit, REPLAY_TIME)


def _download(fetch: Fetch, answer: Answer) -> Download:
    media_type, encoding = answer.content_type
    location = answer.header("location")
    return Download(
        status=answer.status,
        body=answer.body,
        content_type=media_type,
        encoding=encoding,
        location=resolve_header(fetch.url, location) if location else None,
        links=tuple(value for name, value in answer.headers if name.lower() == "link"),
        header_links=read_header_links(fetch.url, answer.headers),
    )
