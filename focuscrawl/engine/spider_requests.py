"""Requests that a project's own spider yields: callbacks, storage, scores."""

from __future__ import annotations

import heapq
import json
import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
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
    AGAIN,
    ALL_REDIRECTS,
    ANSWERS,
    NO_REDIRECT,
    NOINDEX,
    OWN,
    URL_ID,
    VISIT,
)
from focuscrawl.errors import RequestCancelledError, UserError
from focuscrawl.foundation.files import open_plain, write_whole
from focuscrawl.foundation.urls import host, normalize, without_credentials
from focuscrawl.page.documents import parse_w3c_date
from focuscrawl.page.words import tokenize
from focuscrawl.store.schema import QUEUED, UNFOLLOWED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Self

    from scrapy import Spider
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from focuscrawl.crawl import Crawl, Fetch
    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.critic.protocol import Critic


logger = logging.getLogger(__name__)

_SLOT = "download_slot"
_UNREAD = 0.5  # score by a critic that does not read words
MAX_DATES = 50_000  #: dates that are kept; a site map has no more URLs

# Keys in the meta of requests that decide which way a request goes, how it is made, or how much is
# downloaded. The file in a crawl's folder may be a stranger's, whose proxy would see all pages.
#: of Scrapy
_STEERING = (
    *("proxy", "_auth_proxy", "bindaddress", "ftp_user", "ftp_password"),
    *("dont_obey_robotstxt", "download_maxsize"),
)
#: of handlers and middlewares that replace Scrapy's; what each key does is up to them
_HANDLERS = ("playwright", "splash", "zyte_api", "impersonate", "scrapfly", "crawlera")
#: politeness and time-outs are those of the crawl; our own keys are set when a link is due
_SET_ANEW = ("download_slot", "download_timeout", "focuscrawl_")

_KINDS = {kind.__name__: kind for kind in (Request, FormRequest, JsonRequest)}
#: attributes of a request in the file: not its class, which would be imported; its method is GET,
#: and it has no body
_STORED = (
    "url", "callback", "errback", "headers", "cookies", "meta", "encoding", "priority",
    "dont_filter", "flags", "cb_kwargs",
)  # fmt: skip
_HANDLED = "handle_httpstatus_list"


def storable_meta(meta: Mapping[str, Any], trusted: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of the meta of a request is kept for a resumed crawl.

    Parameters
    ----------
    trusted : keys and values that the project itself sets

    Raises
    ------
    ValueError
        It sets which way the request goes, and the project does not set the same.
    """
    for key, value in meta.items():
        steers = key in _STEERING or key.startswith(_HANDLERS)
        if steers and not (key in trusted and trusted[key] == value):
            msg = f"a file may not set {key}, unless FOCUSCRAWL_META says the same"
            raise ValueError(msg)
    return {key: value for key, value in meta.items() if not key.startswith(_SET_ANEW)}


@dataclass(frozen=True)
class LinkRequestSettings:
    """The settings of a project for requests that its spider did not yield.

    Attributes
    ----------
    callback : None for Scrapy's default
    meta : besides the crawl's own keys
    visits : True if every fetch is an item of the spider, errors included
    """

    callback: Callable[[Response], Any] | None
    meta: dict[str, Any]
    visits: bool

    @classmethod
    def of(cls, spider: Spider, config: CrawlConfig) -> Self:
        """Return what `config` says of the requests of a spider.

        Raises
        ------
        UserError
            The spider has no method of the name ``FOCUSCRAWL_CALLBACK``.
        """
        visits = bool(getattr(spider, "yields_visits", False))
        return cls(_callback(spider, config.callback), dict(config.meta), visits)


def _callback(spider: Spider, name: str) -> Callable[[Response], Any] | None:
    if not name:
        return _nobody
    if name == DEFAULT_CALLBACK:
        return None if has_default_callback(spider) else _nobody
    method: Callable[[Response], Any] | None = getattr(spider, name, None)
    if not callable(method):
        raise UserError(
            f"FOCUSCRAWL_CALLBACK={name}: spider {spider.name} has no such method; "
            "an empty value gives the pages to nobody"
        )
    return method


def _nobody(_: Response) -> tuple[()]:
    # the page was judged and recorded
    return ()


class RequestFile:
    """A file of JSON lines in the crawl's folder: requests that wait, and URLs that were fetched.

    Nothing is unpickled. A request whose callback is no method of the spider, or whose meta is no
    JSON or sets which way it goes, is not stored: its page is handled as one that was not
    requested.

    Parameters
    ----------
    folder : of the crawl
    spider : whose requests they are
    trusted : meta that its project itself sets, see `storable_meta`

    Attributes
    ----------
    given : URLs that were fetched for the spider
    """

    NAME = "requests.jsonl"

    def __init__(
        self, folder: Path, spider: Spider, trusted: Mapping[str, Any] | None = None
    ) -> None:
        self._path = folder / self.NAME
        self._spider = spider
        self._trusted = trusted or {}
        self._kept: dict[str, dict[str, Any]] = {}
        self.fetched: set[str] = set()
        self._warned = False

    def load(self, waits: Callable[[str], bool]) -> list[Request]:
        """Read what an earlier run left; drop requests for pages that were given.

        The last line may be half a line, if the run was killed.

        Parameters
        ----------
        waits : whether a URL is yet to be fetched

        Returns
        -------
        Requests for pages that were fetched, and not for the spider
        """
        if not self._path.exists():
            return []
        with open(self._path, encoding="utf-8", errors="replace", opener=open_plain) as file:
            lines = file.read().splitlines()
        for line in lines:
            try:
                url, request = json.loads(line)
            except (ValueError, TypeError, RecursionError):
                continue
            if isinstance(url, str) and request is None:
                self.fetched.add(url)
            elif isinstance(url, str) and isinstance(request, dict):
                self._kept[url] = request
        waiting = {url for url in self._kept if waits(url)}
        self._kept = {
            url: kept
            for url, kept in self._kept.items()
            if url in waiting or url not in self.fetched
        }
        lines = [json.dumps([url, None]) for url in sorted(self.fetched)]
        lines += [json.dumps(each) for each in self._kept.items()]
        write_whole(self._path, "".join(f"{line}\n" for line in lines))
        late = [self.pop(url) for url in [*self._kept] if url not in waiting]
        return [request for request in late if request is not None]

    def add(self, url: str, request: Request) -> None:
        """Store a request that waits for its URL's turn."""
        try:
            attributes = request.to_dict(spider=self._spider)
            kind = type(request).__name__
            if _KINDS.get(kind) is not type(request):
                raise TypeError(kind)
            headers = {
                name.decode("latin-1"): [value.decode("latin-1") for value in values]
                for name, values in request.headers.items()
            }
            kept = {name: attributes[name] for name in _STORED}
            kept["meta"] = storable_meta(request.meta, self._trusted)
            self._append([url, {**kept, "headers": headers, "kind": kind}])
        except (TypeError, ValueError) as error:
            if not self._warned:
                self._warned = True
                logger.warning("%s is not kept for a resumed crawl: %s", request, error)

    def mark_fetched(self, url: str) -> None:
        """Record that a URL is being fetched for the spider."""
        if url not in self.fetched:
            self.fetched.add(url)
            self._append([url, None])

    def pop(self, url: str) -> Request | None:
        """Return the request that an earlier run stored for a URL; None if there is none."""
        kept = self._kept.pop(url, None)
        if kept is None:
            return None
        try:
            kind = _KINDS.get(kept.get("kind", ""), Request)
            stored = {name: kept[name] for name in _STORED if name in kept}
            stored["meta"] = storable_meta(kept.get("meta", {}), self._trusted)
            if normalize(stored["url"]) != url:
                raise ValueError(f"its line is about {stored['url']}")
            if not all(isinstance(each, int) for each in stored["meta"].get(_HANDLED, ())):
                raise ValueError(f"{_HANDLED} is no list of statuses")
            stored["headers"] = {
                name.encode("latin-1"): [value.encode("latin-1") for value in values]
                for name, values in kept.get("headers", {}).items()
            }
            plain = request_from_dict(stored, spider=self._spider)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            logger.warning("cannot ask for %s as before: %s", url, error)
            return None
        return plain.replace(cls=kind)

    def _append(self, line: list[Any]) -> None:
        text = json.dumps(line)  # before the file is touched
        with open(self._path, "a", encoding="utf-8", opener=open_plain) as file:
            file.write(f"{text}\n")


class RequestWords:
    """Scores start requests, those of a site map, and others without a known link.

    The score is the relevance of a page of these words alone: those of the URL, and the
    ``link_text`` that Scrapy's rules put into the meta.
    """

    def __init__(self, critic: Critic) -> None:
        self.critic = critic
        self._reads = bool(getattr(critic, "reads_words", False))
        self._words = WordEvidence(critic, use_critic=self._reads)

    def score(self, request: Request) -> float:
        """Return a score from 0 to 1."""
        if not self._reads:
            return _UNREAD
        from scipy.special import expit  # noqa: PLC0415 - slow to import, for a few requests

        address = request.url.partition("://")[2]
        words, owner = tokenize([f"{address} {request.meta.get('link_text', '')}"])
        evidence = self._words.evidence(words, owner, 1)
        return float(expit(self._words.log_odds(evidence)[0]))


class SitemapDates:
    """Remembers ``lastmod`` of what a `SitemapSpider` reads; its requests do not have it.

    The age of a page is no sign of its relevance: it decides between equal scores only.

    Parameters
    ----------
    spider : any; of one that reads site maps ``sitemap_filter`` is wrapped, so that entries it
        leaves out are not remembered
    """

    def __init__(self, spider: Spider | None) -> None:
        self._at: dict[str, float] = {}
        if isinstance(spider, SitemapSpider):
            filter_entries = spider.sitemap_filter

            def listen(entries: Any) -> Iterator[dict[str, Any]]:
                for entry in filter_entries(entries):
                    self._note(entry.get("loc"), entry.get("lastmod"))
                    yield entry

            spider.sitemap_filter = listen  # type: ignore[method-assign]

    def newest_first(self, requests: Iterable[Request]) -> list[Request]:
        """Return requests, the latest date first; those without one last, as they came."""
        return sorted(requests, key=lambda request: -self._take(request.url))

    def _note(self, loc: Any, lastmod: Any) -> None:
        url, at = normalize(str(loc)), parse_w3c_date(str(lastmod))
        if url is None or at is None:
            return
        self._at[url] = at
        if len(self._at) > MAX_DATES:  # the spider does not ask for all of them
            del self._at[next(iter(self._at))]

    def _take(self, url: str) -> float:
        return self._at.pop(normalize(url) or url, -math.inf)


class SpiderRequests:
    """Keeps requests until the frontier gives out their URL.

    A URL that the crawl knows keeps its place in the frontier, and its page gets the request's
    callback. One that it does not know is scored by the words of the request. Requests that are
    not for a page, are repeated on purpose, or are for a page that was fetched before, bypass the
    frontier: their answers are neither judged nor recorded, and count against the budget.

    Parameters
    ----------
    following : settings for pages that the spider does not request
    failed : called with every failure of a request for a page, before its own errback
    """

    def __init__(
        self,
        crawl: Crawl,
        spider: Spider,
        following: LinkRequestSettings,
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

    def requeue(self, url_id: int, request: Request) -> None:
        """Keep a request that was in flight and has to be made again."""
        self._held[url_id] = request

    def add(self, request: Request) -> bool:
        """Keep a request of the project; False if it is for a page that was fetched."""
        crawl, request = self._crawl, _unmarked(request)
        url = normalize(request.url)
        if url is None or not has_allowed_length(url) or request.method != "GET" or request.body:
            return self._put_aside(request)
        url_id = crawl.urls.get(url)
        known = None if url_id is None else crawl.urls.state(url_id)
        if known in (None, UNFOLLOWED) and (known is None or request.meta.get("is_start_request")):
            url_id = crawl.add_requested(url, request.meta.get("depth", 0), self._score(request))
        elif known not in (QUEUED, UNFOLLOWED) or url_id in crawl.in_flight:
            if not self._was_given(url, request):
                self._file.add(url, request)
                return self._put_late(url, request)
            return request.dont_filter and self._put_aside(request)
        assert url_id is not None
        if url_id in self._held:  # Scrapy's own filter would take the first of them
            return request.dont_filter and self._put_aside(request)
        self._held[url_id] = request = request.replace(url=url)  # as stored: without credentials
        self._file.add(url, request)
        return True

    def pop(self, fetch: Fetch, meta: dict[str, Any]) -> Request | None:
        """Return the request kept for a URL, with `meta` on it; None if there is none."""
        held = self._held.pop(fetch.id, None)
        if held is None and not fetch.is_refetch:  # a second fetch is none of the project's
            held = self._file.pop(fetch.url)
        if held is None:
            return None
        if URL_ID in held.meta:  # it was under way before
            return held.replace(meta=held.meta | meta)
        self._file.mark_fetched(fetch.url)
        own = {OWN: _redirects_seen(held)}
        errback = _ReportingErrback(self._failed, held.errback)
        return held.replace(meta=held.meta | meta | own, errback=errback)

    def pop_bypassing(self) -> Request | None:
        """Return a request that bypasses the frontier, the highest priority first."""
        if not self._aside:
            return None
        request = heapq.heappop(self._aside)[2]
        url = normalize(request.url)
        if url in self._late:
            self._late.discard(url)
            self._file.mark_fetched(url)
        self._crawl.count_bypass(url or without_credentials(request.url))
        return request

    def close(self) -> None:
        """Warn of requests that are lost: those that bypass the frontier are in no file."""
        lost = sum(normalize(request.url) not in self._late for _, _, request in self._aside)
        if lost:
            logger.warning(
                "%d requests that go past the frontier, as forms and second fetches do, were not "
                "made: a resumed crawl does not know of them",
                lost,
            )

    @property
    def has_bypassing(self) -> bool:
        """True if requests that bypass the frontier wait."""
        return bool(self._aside)

    def _score(self, request: Request) -> float:
        if self._words is None or self._words.critic is not self._crawl.critic:
            self._words = RequestWords(self._crawl.critic)  # the topic is another one
        return self._words.score(request)

    def _waits(self, url: str) -> bool:
        url_id = self._crawl.urls.get(url)
        return url_id is not None and self._crawl.urls.state(url_id) in (QUEUED, UNFOLLOWED)

    def _was_given(self, url: str, request: Request) -> bool:
        """Tell whether the spider got the page, in this callback or one that does the same."""
        if url in self._file.fetched or url in self._late:
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
        if isinstance(failure.value, RequestCancelledError):
            return None
        return failure if self.errback is None else self.errback(failure)


def redirected_request(request: Request, url: str) -> Request:
    """Return a request of the project for where its page has moved.

    As with Scrapy's redirects, secrets are not sent to another server: ``Authorization`` stays
    with the origin, ``Cookie`` with the host and encryption (and the cookies of the project in
    Scrapy's jar).
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
    """Remove the crawl's own keys: spiders pass the meta of one page on to the next."""
    if URL_ID not in request.meta:
        return request
    ours = {URL_ID, VISIT, NOINDEX, OWN, AGAIN, _SLOT, "dont_redirect", "handle_httpstatus_all"}
    meta = {name: value for name, value in request.meta.items() if name not in ours}
    errback = request.errback
    return request.replace(
        meta=meta, errback=errback.errback if isinstance(errback, _ReportingErrback) else errback
    )


def _redirects_seen(request: Request) -> str:
    """Return which redirects a project wants to see itself, by its meta for Scrapy."""
    if request.meta.get("dont_redirect"):
        return ALL_REDIRECTS
    return ANSWERS if request.meta.get("handle_httpstatus_all") else NO_REDIRECT
