"""Fetches and obeys robots.txt files by RFC 9309, even huge, slow or malformed files."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Self

from scrapy import Request, signals
from scrapy.exceptions import DownloadFailedError, IgnoreRequest, NotConfigured, StopDownload
from scrapy.http.request import NO_CALLBACK
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler, load_object
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from w3lib.encoding import read_bom

from focuscrawl.crawl.discovery import MAX_FILES
from focuscrawl.engine.component import Component
from focuscrawl.engine.visits import (
    ROBOTS,
    PrivateAddressError,
    UnusableError,
    describe_error,
    redirect_target,
    retry_after_of,
)
from focuscrawl.errors import RequestCancelledError
from focuscrawl.foundation.urls import host
from focuscrawl.page.documents import site_maps_in_robots
from focuscrawl.page.robots_rules import product_token

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser

_PARSED = getattr(signals, "robots_parsed", None)  # documented since Scrapy 2.18
_MAX_SIZE = 500 * 1024  # bytes; RFC 9309 section 2.5: no less
_LARGE = 20_000  # bytes; parsing a larger file blocks the event loop for more than 5 ms
_CACHE_SIZE = 32 * 1024 * 1024  # bytes of cached files; enough for over 10,000 hosts
_ENTRY_SIZE = 1024  # bytes that every cached file counts in addition to its size
_MAX_REDIRECTS = 5  # in a row; RFC 9309 section 2.3.1.2: no less

# A user-agent line in any spelling that Protego accepts; the group is the agent.
_AGENT_LINE = re.compile(
    r"\s*user(?:-|\s*)agent(?:\s*:|\s(?=[^:]*$))\s*([^\s#][^#]*)", re.IGNORECASE
)


class RobotRules(ProtegoRobotParser):
    """The rules of a robots.txt; groups are matched as in RFC 9309, section 2.2.1.

    A group of rules applies to a crawler if the group names the whole product token of the
    crawler, ignoring case. The library Protego searches the whole ``User-Agent`` header for each
    crawler name in robots.txt. The names and the header are passed to Protego with a slash on each
    side, so that Protego matches whole names only.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> Self:
        """Parse a robots.txt."""
        whole = "\n".join(map(_delimit_agent, _decode(robotstxt_body).splitlines()))
        return super().from_crawler(crawler, whole.encode())

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Return whether the rules allow a crawler to fetch a URL."""
        return super().allowed(url, _delimited_token(user_agent))

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """Return the ``Crawl-delay`` of the rules for a crawler in seconds, or None."""
        return super().crawl_delay(_delimited_token(user_agent))


def _decode(body: bytes) -> str:
    """Decode a robots.txt as its byte order mark says, else as UTF-8; drop leading marks."""
    return body.decode(read_bom(body)[0] or "utf-8", "ignore").lstrip("\ufeff \t\r\n")


def _delimited_token(agent: str | bytes) -> str:
    return f"/{product_token(agent)}/"


def _delimit_agent(line: str) -> str:
    named = _AGENT_LINE.match(line)
    if named is None:
        return line
    if named[1].split()[0] == "*":
        return "User-agent: *"
    return f"User-agent: /{product_token(named[1]) or '?'}/"  # no token has a question mark


class RobotsUnreachableError(UnusableError, DownloadFailedError):
    """The robots.txt of a host cannot be fetched, so the host must not be crawled (RFC 9309).

    Scrapy retries the request for the page like any failed download.

    Attributes
    ----------
    cause : str
        Cause of the failure, as for a page; ``robots.txt`` if the host answered with an error.
    retry_after : float or None
        Seconds of the ``Retry-After`` header.
    """

    def __init__(
        self, why: str, retry_after: float | None = None, cause: str = "robots.txt"
    ) -> None:
        super().__init__(why)
        self.cause = cause
        self.retry_after = retry_after

    @classmethod
    def from_download_error(cls, error: Exception) -> Self:
        """Create the error from the error that the download of robots.txt raised."""
        name, _, details = describe_error(error).partition(": ")
        return cls(f"robots.txt: {details}" if details else "robots.txt", cause=name)


class _RedirectLoopError(Exception):
    """A robots.txt has a redirect loop or too many redirects."""


class _RobotsFile(NamedTuple):
    """Rules (None: everything is allowed), size and site maps of a robots.txt."""

    rules: RobotParser | None = None
    size: int = 0
    site_maps: Sequence[str] = ()

    def allows(self, url: str, agent: str) -> bool:
        return self.rules is None or self.rules.allowed(url, agent)


class RobotsMiddleware(Component):
    """Fetches the robots.txt of a host before the host's first page, and obeys the rules.

    A missing robots.txt (status 4xx, or a redirect loop) allows all URLs of the host. If
    robots.txt cannot be fetched (no response, status 429 or 5xx), the request for the page fails.
    A retry of the request fetches robots.txt again. Only the first 500 KiB of a robots.txt are
    used. If a robots.txt redirects, up to five consecutive redirects are followed. The request for
    a redirect target obeys the delay and the robots.txt of the target's host.

    Scrapy's own middleware allows all URLs if the download of robots.txt fails. The setting
    ``ROBOTSTXT_OBEY = False`` disables the middleware.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        self._replays = self._crawl.web is not None
        self._parser: type[RobotParser] = load_object(crawler.settings["ROBOTSTXT_PARSER"])
        self._agent = crawler.settings["ROBOTSTXT_USER_AGENT"]
        self._cache: OrderedDict[str, _RobotsFile] = OrderedDict()
        self._cached_bytes = 0
        self._waiting: dict[str, list[Deferred[None]]] = {}
        self._redirected: dict[
            str, str
        ] = {}  # by origin: the origin that its robots.txt redirects to

    async def process_request(self, request: Request) -> None:
        """Check a request against the robots.txt of the request's host.

        Raises
        ------
        IgnoreRequest
            The robots.txt forbids the URL.
        RobotsUnreachableError
            The robots.txt cannot be fetched.
        """
        url = urlparse_cached(request)
        if request.meta.get("dont_obey_robotstxt") or url.scheme not in ("http", "https"):
            return
        known = await self._rules_of(f"{url.scheme}://{url.netloc}", request)
        if not known.allows(request.url, self._token(request)):
            self._crawler.stats.inc_value("robotstxt/forbidden")
            raise IgnoreRequest("Forbidden by robots.txt")

    def bytes_received(self, data: bytes, request: Request) -> None:
        """Stop the download of a robots.txt that is too large."""
        if ROBOTS in request.meta:
            request.meta[ROBOTS] += len(data)
            if request.meta[ROBOTS] > _MAX_SIZE:
                raise StopDownload(fail=False)

    def _token(self, request: Request) -> str:
        agent = self._agent or request.headers.get("User-Agent")
        return product_token(agent or self._crawler.settings["USER_AGENT"] or "")

    async def _rules_of(
        self, origin: str, request: Request, left: int = _MAX_REDIRECTS
    ) -> _RobotsFile:
        """Return the robots.txt of `origin`; fetch it first if it is not known.

        Follow at most `left` redirects; raise `_RedirectLoopError` if there are more and another
        host redirects to this robots.txt.
        """
        while origin in self._waiting:
            asked: Deferred[None] = Deferred()
            self._waiting[origin].append(asked)
            await maybe_deferred_to_future(asked)
        if origin in self._cache:
            self._cache.move_to_end(origin)
            return self._cache[origin]
        self._waiting[origin] = []
        try:
            known = await self._load(origin, request, left)
            self._store(origin, known)
            if known.site_maps:
                self._crawl.add_site_maps(origin, known.site_maps)
        finally:
            for waiting in self._waiting.pop(origin):
                waiting.callback(None)
        return known

    async def _load(self, origin: str, request: Request, left: int) -> _RobotsFile:
        try:
            return await self._follow_redirects(origin, request, left)
        except _RedirectLoopError:
            if left < _MAX_REDIRECTS:
                raise
            return _RobotsFile()

    async def _follow_redirects(self, origin: str, request: Request, left: int) -> _RobotsFile:
        url = f"{origin}/robots.txt"
        seen = {url}
        while (response := await self._fetch(url)) is not None:
            target = redirect_target(response)
            if target is None:
                return await self._parse_response(response, request)
            if left == 0 or target in seen:
                raise _RedirectLoopError
            left -= 1
            self._crawler.stats.inc_value("robotstxt/redirect_count")
            elsewhere = f"{target.partition(':')[0]}://{host(target)}"
            if elsewhere != origin:
                known = await self._rules_of_other_host(origin, elsewhere, request, left)
                if target == f"{elsewhere}/robots.txt":
                    return known
                if not known.allows(target, self._token(request)):
                    break
            url = target
            seen.add(url)
        return _RobotsFile()

    async def _rules_of_other_host(
        self, origin: str, elsewhere: str, request: Request, left: int
    ) -> _RobotsFile:
        """Return the robots.txt of another host; raise if its redirect waits for this host."""
        after: str | None = elsewhere
        while after is not None:
            if after == origin:
                raise _RedirectLoopError
            after = self._redirected.get(after)
        self._redirected[origin] = elsewhere
        try:
            return await self._rules_of(elsewhere, request, left)
        finally:
            del self._redirected[origin]

    async def _fetch(self, url: str) -> Response | None:
        """Return the response for a robots.txt; None if the request is not allowed."""
        stats = self._crawler.stats
        stats.inc_value("robotstxt/request_count")
        try:
            response = await self._crawler.engine.download_async(_robots_request(url))
        except (IgnoreRequest, PrivateAddressError):
            return None
        except RequestCancelledError:
            raise
        except Exception as error:
            stats.inc_value(f"robotstxt/exception_count/{type(error)}")
            if self._replays:
                return None
            raise RobotsUnreachableError.from_download_error(error) from error
        stats.inc_value("robotstxt/response_count")
        stats.inc_value(f"robotstxt/response_status_count/{response.status}")
        if (response.status == 429 or response.status >= 500) and not self._replays:
            raise RobotsUnreachableError(f"HTTP {response.status}", retry_after_of(response))
        return response

    async def _parse_response(self, response: Response, request: Request) -> _RobotsFile:
        if not 200 <= response.status < 300:
            return _RobotsFile()
        rules = await self._parse_rules(response)
        site_maps: list[str] = []
        if self._crawl.config.discover:
            text = _decode(response.body[:_MAX_SIZE])
            site_maps = [*islice(site_maps_in_robots(text, response.url), MAX_FILES)]
        if _PARSED is not None:
            await self._crawler.signals.send_catch_log_async(
                _PARSED, robotparser=rules, request=request
            )
        return _RobotsFile(rules, min(len(response.body), _MAX_SIZE), site_maps)

    async def _parse_rules(self, response: Response) -> RobotParser:
        body = response.body
        if len(body) > _MAX_SIZE:
            body = body[: body.rfind(b"\n", 0, _MAX_SIZE) + 1]  # drop a truncated last line
        if len(body) <= _LARGE:
            return build_from_crawler(self._parser, self._crawler, body)
        parsing = deferToThread(build_from_crawler, self._parser, self._crawler, body)
        return await maybe_deferred_to_future(parsing)

    def _store(self, origin: str, known: _RobotsFile) -> None:
        """Cache rules, and drop the least recently used ones."""
        self._cache[origin] = known
        self._cached_bytes += known.size + _ENTRY_SIZE
        while self._cached_bytes > _CACHE_SIZE and len(self._cache) > 1:
            _, forgotten = self._cache.popitem(last=False)
            self._cached_bytes -= forgotten.size + _ENTRY_SIZE


def _robots_request(url: str) -> Request:
    return Request(
        url,
        headers={"Accept-Encoding": "identity"},  # a truncated download must be readable
        meta={
            "dont_obey_robotstxt": True,
            "dont_redirect": True,  # each redirect is a request with the delay of its own host
            "dont_retry": True,  # the retry of the page fetches robots.txt again
            "download_maxsize": 0,  # `bytes_received` truncates the file instead
            ROBOTS: 0,
        },
        priority=1000,
        callback=NO_CALLBACK,
    )
