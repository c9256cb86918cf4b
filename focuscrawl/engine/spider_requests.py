"""Requests that do not come out of the frontier: those that a project's own spider yields."""

from __future__ import annotations

import heapq
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from focuscrawl.crawl.link_filter import fits
from focuscrawl.engine.meta import (
    AGAIN,
    ALL_REDIRECTS,
    ANSWERS,
    NO_REDIRECT,
    NOINDEX,
    OWN,
    URL_ID,
    VISIT,
)
from focuscrawl.engine.request_file import RequestFile
from focuscrawl.engine.request_words import RequestWords
from focuscrawl.errors import GivenUpError
from focuscrawl.foundation.urls import host, normalize, without_credentials
from focuscrawl.store.schema import QUEUED, UNFOLLOWED

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from scrapy import Request, Spider
    from twisted.python.failure import Failure

    from focuscrawl.crawl import Crawl, Fetch
    from focuscrawl.engine.link_requests import LinkRequests

logger = logging.getLogger(__name__)

_SLOT = "download_slot"


class SpiderRequests:
    """Keeps requests until the frontier says that it is their URL's turn.

    A page that the crawl knows keeps its place in the frontier, and comes with the request's
    callback. One that it does not know is scored by the words of the request. What is no page,
    asked for once more on purpose, or fetched before the spider asked for it, goes past the
    frontier: it is neither judged nor recorded, and counts against the budget.

    Parameters
    ----------
    following : what happens to pages that the spider does not ask for
    failed : told of every failure of a request for a page, before its own errback is
    """

    def __init__(
        self,
        crawl: Crawl,
        spider: Spider,
        following: LinkRequests,
        failed: Callable[[Failure], object],
    ) -> None:
        self._crawl = crawl
        self._spider = spider
        self._following = following
        self._failed = failed
        self._file = RequestFile(crawl.folder.path, spider, following.meta)
        self._held: dict[int, Request] = {}
        self._aside: list[tuple[int, int, Request]] = []
        self._late: set[str] = set()  # pages that were fetched before the spider asked
        self._count = 0
        self._words: RequestWords | None = None
        for request in self._file.load(self._waits):
            self._put_late(normalize(request.url) or request.url, request)

    def put_back(self, number: int, request: Request) -> None:
        """Keep a request that was under way and has to be made again."""
        self._held[number] = request

    def take(self, request: Request) -> bool:
        """Keep a request of the project's; False if it is for a page that was fetched."""
        crawl, request = self._crawl, _unmarked(request)
        url = normalize(request.url)
        if url is None or not fits(url) or request.method != "GET" or request.body:
            return self._put_aside(request)
        number = crawl.urls.get(url)
        known = None if number is None else crawl.urls.state(number)
        if known in (None, UNFOLLOWED) and (known is None or _is_start(request)):
            number = crawl.add_asked(url, request.meta.get("depth", 0), self._score(request))
        elif known not in (QUEUED, UNFOLLOWED) or number in crawl.in_flight:
            if not self._was_given(url, request):
                self._file.hold(url, request)
                return self._put_late(url, request)
            return request.dont_filter and self._put_aside(request)
        assert number is not None
        if number in self._held:  # Scrapy's own filter would take the first of them
            return request.dont_filter and self._put_aside(request)
        self._held[number] = request = request.replace(url=url)  # as stored: without credentials
        self._file.hold(url, request)
        return True

    def pop(self, fetch: Fetch, meta: dict[str, Any]) -> Request | None:
        """Return the request kept for a URL, with `meta` on it; None if there is none."""
        held = self._held.pop(fetch.id, None)
        if held is None and not fetch.again:  # a second fetch is none of the project's
            held = self._file.pop(fetch.url)
        if held is None:
            return None
        if URL_ID in held.meta:  # it was under way before
            return held.replace(meta=held.meta | meta)
        self._file.give(fetch.url)
        own = {OWN: _redirects_seen(held)}
        errback = _ReportingErrback(self._failed, held.errback)
        return held.replace(meta=held.meta | meta | own, errback=errback)

    def pop_aside(self) -> Request | None:
        """Return what goes past the frontier, the highest priority first."""
        if not self._aside:
            return None
        request = heapq.heappop(self._aside)[2]
        url = normalize(request.url)
        if url in self._late:
            self._late.discard(url)
            self._file.give(url)
        self._crawl.count_aside(url or without_credentials(request.url))
        return request

    def close(self) -> None:
        """Say what is lost: requests that go past the frontier are in no file."""
        lost = sum(normalize(request.url) not in self._late for _, _, request in self._aside)
        if lost:
            logger.warning(
                "%d requests that go past the frontier, as forms and second fetches do, were not "
                "made: a resumed crawl does not know of them",
                lost,
            )

    @property
    def waiting(self) -> bool:
        """True if anything waits to go past the frontier."""
        return bool(self._aside)

    def _score(self, request: Request) -> float:
        if self._words is None or self._words.critic is not self._crawl.critic:
            self._words = RequestWords(self._crawl.critic)  # the topic is another one
        return self._words.score(request)

    def _waits(self, url: str) -> bool:
        number = self._crawl.urls.get(url)
        return number is not None and self._crawl.urls.state(number) in (QUEUED, UNFOLLOWED)

    def _was_given(self, url: str, request: Request) -> bool:
        """Tell whether the spider had the page, in this callback or one that does the same."""
        if url in self._file.given or url in self._late:
            return True
        default = request.callback in (None, getattr(self._spider, "parse", None))
        return default and not request.cb_kwargs and self._following.callback is None

    def _put_late(self, url: str, request: Request) -> bool:
        self._late.add(url)
        return self._put_aside(request)

    def _put_aside(self, request: Request) -> bool:
        url = normalize(request.url)
        if url is not None and _SLOT not in request.meta:  # be as polite as to the host's pages
            request = request.replace(meta={**request.meta, _SLOT: host(url)})
        self._count += 1
        heapq.heappush(self._aside, (-request.priority, self._count, request))
        return True


@dataclass(frozen=True)
class _ReportingErrback:
    """The errback of a project's request; it reports the failure to the crawl first.

    A request that was given up as the crawl ends has not failed: it is queued again.
    """

    report: Callable[[Failure], object]
    errback: Callable[..., Any] | None

    def __call__(self, failure: Failure) -> Any:
        self.report(failure)
        if isinstance(failure.value, GivenUpError):
            return None
        return failure if self.errback is None else self.errback(failure)


def redirected(request: Request, url: str) -> Request:
    """Return a request of the project's for where its page has moved.

    What it, or a middleware, tells one server is not told to another, as with Scrapy's redirects:
    ``Authorization`` stays with the origin, ``Cookie`` with the host and encryption (and the
    cookies of the project in Scrapy's jar).
    """
    before = request.meta.get("redirect_urls", [])
    plain = _unmarked(request)
    meta = {**plain.meta, "redirect_urls": [*before, request.url]}
    moved = plain.replace(url=url, meta=meta, cookies={})
    old, new = urlsplit(request.url), urlsplit(url)
    if (old.scheme, old.netloc) != (new.scheme, new.netloc):
        moved.headers.pop("Authorization", None)
    if old.hostname != new.hostname or new.scheme not in (old.scheme, "https"):
        moved.headers.pop("Cookie", None)
    return moved


def _unmarked(request: Request) -> Request:
    """Take off what the crawl put on: spiders pass the meta of one page on to the next."""
    if URL_ID not in request.meta:
        return request
    ours = {URL_ID, VISIT, NOINDEX, OWN, AGAIN, _SLOT, "dont_redirect", "handle_httpstatus_all"}
    meta = {name: value for name, value in request.meta.items() if name not in ours}
    errback = request.errback
    return request.replace(
        meta=meta, errback=errback.errback if isinstance(errback, _ReportingErrback) else errback
    )


def _is_start(request: Request) -> bool:
    return bool(request.meta.get("is_start_request"))


def _redirects_seen(request: Request) -> str:
    """Tell which redirects a project wants to see itself, as it tells Scrapy."""
    if request.meta.get("dont_redirect"):
        return ALL_REDIRECTS
    return ANSWERS if request.meta.get("handle_httpstatus_all") else NO_REDIRECT
