"""Requests of a project's own spider: callbacks, storage for resumed crawls, and scores."""

from __future__ import annotations

import heapq
import json
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from scrapy import FormRequest, Request
from scrapy.http import JsonRequest
from scrapy.spiders import SitemapSpider
from scrapy.utils.request import request_from_dict

from focuscrawl.apprentice.feature_extraction import WordEvidence
from focuscrawl.crawl.scope import has_allowed_length
from focuscrawl.crawl_config import DEFAULT_CALLBACK
from focuscrawl.engine.private import has_default_callback
from focuscrawl.engine.visits import (
    ALL_REDIRECTS,
    ANSWERS,
    COOKIES,
    COOKIES_SENT,
    NO_REDIRECT,
    NOINDEX,
    OWN_REQUEST,
    REFETCH,
    URL_ID,
    VISIT,
)
from focuscrawl.errors import RequestCancelledError, UserError
from focuscrawl.foundation.files import open_nofollow, write_atomically
from focuscrawl.foundation.urls import normalize, without_credentials
from focuscrawl.page.documents import parse_w3c_date
from focuscrawl.page.words import tokenize
from focuscrawl.store.schema import QUEUED, UNFOLLOWED

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from focuscrawl.crawl import Crawl, Fetch
    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.critic.protocol import Critic


logger = logging.getLogger(__name__)

_DEFAULT_SCORE = 0.5  # if the critic does not judge single words
MAX_DATES = 50_000  #: dates in memory; a site map has at most as many URLs

# Keys of ``request.meta`` that set the route or method of a request, or the size of a download.
# The request file of a crawl can be untrusted, and a proxy would see all pages.
_STEERING = (
    *("proxy", "_auth_proxy", "bindaddress", "ftp_user", "ftp_password"),
    *("dont_obey_robotstxt", "download_maxsize"),
)
# prefixes of the keys of other download handlers and middlewares
_HANDLERS = ("playwright", "splash", "zyte_api", "impersonate", "scrapfly", "crawlera")
# keys that the crawl sets when the URL is fetched
_SET_BY_CRAWL = ("download_slot", "download_timeout", "focuscrawl_")

_KINDS = {kind.__name__: kind for kind in (Request, FormRequest, JsonRequest)}
# Stored attributes of a request, whose method is GET. The class is not stored, because loading it
# would import a module.
_STORED = (
    "url", "callback", "errback", "headers", "cookies", "meta", "encoding", "priority",
    "dont_filter", "flags", "cb_kwargs",
)  # fmt: skip
_HANDLED = "handle_httpstatus_list"


def storable_meta(meta: Mapping[str, Any], trusted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a request's meta that is stored for a resumed crawl.

    Raises
    ------
    ValueError
        The meta sets the route of the request, such as a proxy, and is not part of ``trusted``,
        the meta in the project's settings.
    """
    for key, value in meta.items():
        steers = key in _STEERING or key.startswith(_HANDLERS)
        if steers and not (key in trusted and trusted[key] == value):
            msg = f"a stored request may not set meta key {key}: set {key} in FOCUSCRAWL_META"
            raise ValueError(msg)
    return {key: value for key, value in meta.items() if not key.startswith(_SET_BY_CRAWL)}


@dataclass(frozen=True)
class LinkRequestSettings:
    """A project's settings for requests that focuscrawl creates for links."""

    callback: Callable[[Response], Any] | None  # None for the spider's default callback
    meta: dict[str, Any]
    visits: bool  # True if every fetch, including an error, is an item of the spider

    @classmethod
    def of(cls, spider: Spider, config: CrawlConfig) -> Self:
        """Create the settings for a spider from the configuration of a crawl.

        Raises
        ------
        UserError
            The spider has no method with the name in ``FOCUSCRAWL_CALLBACK``.
        """
        visits = bool(getattr(spider, "yields_visits", False))
        return cls(_callback(spider, config.callback), dict(config.meta), visits)


def _callback(spider: Spider, name: str) -> Callable[[Response], Any] | None:
    if not name:
        return _ignore_response
    if name == DEFAULT_CALLBACK:
        return None if has_default_callback(spider) else _ignore_response
    method: Callable[[Response], Any] | None = getattr(spider, name, None)
    if not callable(method):
        raise UserError(
            f"FOCUSCRAWL_CALLBACK={name}: spider {spider.name} has no method {name}: name a "
            "method, or set an empty value to call no method"
        )
    return method


def _ignore_response(_: Response) -> tuple[()]:
    return ()


class RequestFile:
    """JSON lines file in the crawl's folder with a spider's queued requests and fetched URLs.

    Nothing is unpickled. A request is not stored if its callback is not a method of the spider. A
    request is also not stored if its meta is not JSON-serializable, or determines a route such as
    a proxy. If a request was not stored, a resumed crawl treats its page like a page that the
    spider did not request.

    Attributes
    ----------
    fetched : set of str
        URLs that were fetched for the spider.
    """

    NAME = "requests.jsonl"

    def __init__(
        self, folder: Path, spider: Spider, trusted: Mapping[str, Any] | None = None
    ) -> None:
        self._path = folder / self.NAME
        self._spider = spider
        self._trusted = trusted or {}
        self._stored: dict[str, dict[str, Any]] = {}
        self.fetched: set[str] = set()
        self._warned = False

    def load(self, is_queued: Callable[[str], bool]) -> list[Request]:
        """Read the file that an earlier run wrote, and rewrite it without finished requests.

        The result also contains requests whose page was fetched, but not passed to the spider. The
        last line may be incomplete if the earlier run was killed.
        """
        if not self._path.exists():
            return []
        with open(self._path, encoding="utf-8", errors="replace", opener=open_nofollow) as file:
            lines = file.read().splitlines()
        for line in lines:
            try:
                url, request = json.loads(line)
            except (ValueError, TypeError, RecursionError):
                continue
            if isinstance(url, str) and request is None:
                self.fetched.add(url)
            elif isinstance(url, str) and isinstance(request, dict):
                self._stored[url] = request
        waiting = {url for url in self._stored if is_queued(url)}
        self._stored = {
            url: stored_request
            for url, stored_request in self._stored.items()
            if url in waiting or url not in self.fetched
        }
        lines = [json.dumps([url, None]) for url in sorted(self.fetched)]
        lines += [json.dumps(each) for each in self._stored.items()]
        write_atomically(self._path, "".join(f"{line}\n" for line in lines))
        late = [self.pop(url) for url in [*self._stored] if url not in waiting]
        return [request for request in late if request is not None]

    def add(self, url: str, request: Request) -> None:
        """Store a request whose URL was queued."""
        try:
            attributes = request.to_dict(spider=self._spider)
            kind = type(request).__name__
            if _KINDS.get(kind) is not type(request):
                raise TypeError(kind)
            headers = {
                name.decode("latin-1"): [value.decode("latin-1") for value in values]
                for name, values in request.headers.items()
            }
            stored_request = {name: attributes[name] for name in _STORED}
            stored_request["meta"] = storable_meta(request.meta, self._trusted)
            self._append([url, {**stored_request, "headers": headers, "kind": kind}])
        except (TypeError, ValueError) as error:
            if not self._warned:
                self._warned = True
                logger.warning("%s is not stored for a resumed crawl: %s", request, error)

    def mark_fetched(self, url: str) -> None:
        """Record that the URL of a stored request is being fetched for the spider."""
        if url not in self.fetched:
            self.fetched.add(url)
            self._append([url, None])

    def pop(self, url: str) -> Request | None:
        """Return the stored request of an earlier run for a URL, or None."""
        stored_request = self._stored.pop(url, None)
        if stored_request is None:
            return None
        try:
            kind = _KINDS.get(stored_request.get("kind", ""), Request)
            stored = {name: stored_request[name] for name in _STORED if name in stored_request}
            stored["meta"] = storable_meta(stored_request.get("meta", {}), self._trusted)
            if normalize(stored["url"]) != url:
                raise ValueError(f"the stored request is for {stored['url']}")
            if not all(isinstance(each, int) for each in stored["meta"].get(_HANDLED, ())):
                raise ValueError(f"{_HANDLED} is not a list of status codes")
            stored["headers"] = {
                name.encode("latin-1"): [value.encode("latin-1") for value in values]
                for name, values in stored_request.get("headers", {}).items()
            }
            plain = request_from_dict(stored, spider=self._spider)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            logger.warning("cannot restore the stored request for %s: %s", url, error)
            return None
        return plain.replace(cls=kind)

    def _append(self, line: list[Any]) -> None:
        text = json.dumps(line)  # before the file is touched
        with open(self._path, "a", encoding="utf-8", opener=open_nofollow) as file:
            file.write(f"{text}\n")


class RequestWords:
    """Scores requests without a known link, such as start requests and site map entries.

    The score is the critic's relevance of a page that consists of the words of the URL and of the
    ``link_text`` that Scrapy's link rules set in the meta.
    """

    def __init__(self, critic: Critic) -> None:
        self.critic = critic
        self._can_score = bool(getattr(critic, "reads_words", False))
        self._words = WordEvidence(critic, use_critic=self._can_score)

    def score(self, request: Request) -> float:
        """Return the score of a request, from 0 to 1."""
        if not self._can_score:
            return _DEFAULT_SCORE
        from scipy.special import expit  # noqa: PLC0415 - slow to import, and rarely used

        address = request.url.partition("://")[2]
        words, owner = tokenize([f"{address} {request.meta.get('link_text', '')}"])
        evidence = self._words.evidence(words, owner, 1)
        return float(expit(self._words.log_odds(evidence)[0]))


class SitemapDates:
    """Sorts the requests of a `SitemapSpider` by the date ``lastmod`` in the site map.

    The date only orders requests with equal scores, because the relevance of a page does not
    depend on its age. The class wraps the spider's method ``sitemap_filter``, so that only dates
    of accepted entries are stored.
    """

    def __init__(self, spider: Spider | None) -> None:
        self._at: dict[str, float] = {}
        if isinstance(spider, SitemapSpider):
            filter_entries = spider.sitemap_filter

            def filter_and_record(entries: Any) -> Iterator[dict[str, Any]]:
                for entry in filter_entries(entries):
                    self._add_date(entry.get("loc"), entry.get("lastmod"))
                    yield entry

            spider.sitemap_filter = filter_and_record  # type: ignore[method-assign]

    def newest_first(self, requests: Iterable[Request]) -> list[Request]:
        """Sort requests by date, latest first; requests without a date are last."""
        return sorted(requests, key=lambda request: -self._pop_date(request.url))

    def _add_date(self, loc: Any, lastmod: Any) -> None:
        url, at = normalize(str(loc)), parse_w3c_date(str(lastmod))
        if url is None or at is None:
            return
        self._at[url] = at
        if len(self._at) > MAX_DATES:  # the spider does not request all entries
            del self._at[next(iter(self._at))]

    def _pop_date(self, url: str) -> float:
        return self._at.pop(normalize(url) or url, -math.inf)


class SpiderRequests:
    """Keeps the requests of a project's spider until the frontier returns their URLs.

    If the crawl knows the URL of a request, the URL keeps its score, and the page is passed to the
    request's callback. If the crawl does not know the URL of a request, `RequestWords` scores the
    URL. Three kinds of requests bypass the frontier: requests that are not for a page, requests
    repeated on purpose, and requests for fetched pages. Responses to requests that bypass the
    frontier are not judged or recorded, but count against the budget.

    When a request for a page fails, the callable ``failed`` is called before the request's
    errback.
    """

    def __init__(
        self,
        crawl: Crawl,
        spider: Spider,
        link_settings: LinkRequestSettings,
        failed: Callable[[Failure], object],
    ) -> None:
        self._crawl = crawl
        self._spider = spider
        self._link_settings = link_settings
        self._failed = failed
        self._file = RequestFile(crawl.folder.path, spider, link_settings.meta)
        self._requests: dict[int, Request] = {}
        self._bypassing: list[tuple[int, int, Request]] = []
        self._late: set[str] = set()  # URLs that were fetched before the spider requested them
        self._count = 0
        self._words: RequestWords | None = None
        for request in self._file.load(self._is_queued):
            self._add_late(normalize(request.url) or request.url, request)

    def requeue(self, url_id: int, request: Request) -> None:
        """Keep a request that was in flight and must be sent again."""
        self._requests[url_id] = request

    def add(self, request: Request) -> bool:
        """Keep a request of the spider; return False if the spider has already got the page."""
        crawl, request = self._crawl, _without_own_keys(request)
        url = normalize(request.url)
        if url is None or not has_allowed_length(url) or request.method != "GET" or request.body:
            return self._add_bypassing(request)
        url_id = crawl.urls.get(url)
        known = None if url_id is None else crawl.urls.state(url_id)
        if known in (None, UNFOLLOWED) and (known is None or request.meta.get("is_start_request")):
            url_id = crawl.add_requested(url, request.meta.get("depth", 0), self._score(request))
        elif known not in (QUEUED, UNFOLLOWED) or url_id in crawl.in_flight:
            if not self._spider_got_page(url, request):
                self._file.add(url, request)
                return self._add_late(url, request)
            return request.dont_filter and self._add_bypassing(request)
        assert url_id is not None
        if url_id in self._requests:  # keep the first request, like Scrapy's duplicate filter
            return request.dont_filter and self._add_bypassing(request)
        self._requests[url_id] = request = request.replace(
            url=url
        )  # as stored: without credentials
        self._file.add(url, request)
        return True

    def pop(self, fetch: Fetch, meta: dict[str, Any]) -> Request | None:
        """Return the request kept for a URL, with the entries of ``meta`` added, or None."""
        request = self._requests.pop(fetch.id, None)
        if request is None and not fetch.is_refetch:  # the spider did not request a second fetch
            request = self._file.pop(fetch.url)
        if request is None:
            return None
        if URL_ID in request.meta:  # the request was in flight before
            return request.replace(meta=request.meta | meta)
        self._file.mark_fetched(fetch.url)
        own = {OWN_REQUEST: _redirects_to_pass_on(request)}
        errback = _ReportingErrback(self._failed, request.errback)
        return request.replace(meta=request.meta | meta | own, errback=errback)

    def pop_bypassing(self) -> Request | None:
        """Return the next request that bypasses the frontier (highest priority first), or None."""
        if not self._bypassing:
            return None
        request = heapq.heappop(self._bypassing)[2]
        url = normalize(request.url)
        if url in self._late:
            self._late.discard(url)
            self._file.mark_fetched(url)
        self._crawl.count_bypass(url or without_credentials(request.url))
        return request

    def close(self) -> None:
        """Warn about requests that are lost when the crawl stops, because no file stores them."""
        lost = sum(normalize(request.url) not in self._late for _, _, request in self._bypassing)
        if lost:
            logger.warning(
                "%d requests that bypass the frontier, such as forms and repeated requests, were "
                "not sent and will not be sent by a resumed crawl",
                lost,
            )

    @property
    def has_bypassing(self) -> bool:
        """True if any request that bypasses the frontier is queued."""
        return bool(self._bypassing)

    def _score(self, request: Request) -> float:
        if self._words is None or self._words.critic is not self._crawl.critic:
            self._words = RequestWords(self._crawl.critic)  # the topic has changed
        return self._words.score(request)

    def _is_queued(self, url: str) -> bool:
        url_id = self._crawl.urls.get(url)
        return url_id is not None and self._crawl.urls.state(url_id) in (QUEUED, UNFOLLOWED)

    def _spider_got_page(self, url: str, request: Request) -> bool:
        """Tell whether the page was passed to this callback or to an equal one."""
        if url in self._file.fetched or url in self._late:
            return True
        default = request.callback in (None, getattr(self._spider, "parse", None))
        return default and not request.cb_kwargs and self._link_settings.callback is None

    def _add_late(self, url: str, request: Request) -> bool:
        self._late.add(url)
        return self._add_bypassing(request)

    def _add_bypassing(self, request: Request) -> bool:
        self._count += 1
        heapq.heappush(self._bypassing, (-request.priority, self._count, request))
        return True


@dataclass(frozen=True)
class _ReportingErrback:
    """Errback that reports a failure to the crawl, and then calls the request's own errback.

    A request that was cancelled because the crawl stops has not failed, and is queued again.
    """

    report: Callable[[Failure], object]
    errback: Callable[..., Any] | None

    def __call__(self, failure: Failure) -> Any:
        self.report(failure)
        if isinstance(failure.value, RequestCancelledError):
            return None
        return failure if self.errback is None else self.errback(failure)


def redirected_request(request: Request, url: str) -> Request:
    """Return a copy of a request by the project's spider, with the URL of a redirect's target.

    As in Scrapy, the header ``Authorization`` is dropped for another origin, and ``Cookie`` is
    dropped for another host or an unencrypted connection. Cookies that the original request set
    remain in Scrapy's cookie jar.
    """
    before = request.meta.get("redirect_urls", [])
    plain = _without_own_keys(request)
    meta = {**plain.meta, "redirect_urls": [*before, request.url]}
    moved = plain.replace(url=url, meta=meta, cookies={})
    old, new = urlsplit(request.url), urlsplit(url)
    if (old.scheme, old.netloc) != (new.scheme, new.netloc):
        moved.headers.pop("Authorization", None)
    if old.hostname != new.hostname or new.scheme not in (old.scheme, "https"):
        moved.headers.pop("Cookie", None)
    return moved


def _without_own_keys(request: Request) -> Request:
    """Remove the crawl's own meta keys, which spiders copy from a page to new requests."""
    if URL_ID not in request.meta:
        return request
    ours = {
        URL_ID,
        VISIT,
        NOINDEX,
        OWN_REQUEST,
        REFETCH,
        COOKIES,
        COOKIES_SENT,
        "download_slot",
        "dont_redirect",
        "handle_httpstatus_all",
    }
    meta = {name: value for name, value in request.meta.items() if name not in ours}
    errback = request.errback
    return request.replace(
        meta=meta, errback=errback.errback if isinstance(errback, _ReportingErrback) else errback
    )


def _redirects_to_pass_on(request: Request) -> str:
    """Return which redirects are passed to the project, according to Scrapy's keys in the meta."""
    if request.meta.get("dont_redirect"):
        return ALL_REDIRECTS
    return ANSWERS if request.meta.get("handle_httpstatus_all") else NO_REDIRECT
