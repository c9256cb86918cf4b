"""robots.txt by RFC 9309, also where it is huge, slow, broken or missing."""

from __future__ import annotations

import re
from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from scrapy import Request, signals
from scrapy.exceptions import DownloadFailedError, IgnoreRequest, NotConfigured, StopDownload
from scrapy.http.request import NO_CALLBACK
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler, load_object
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

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

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser

_PARSED = getattr(signals, "robots_parsed", None)  # documented since Scrapy 2.18
_MOST = 500 * 1024  # bytes; RFC 9309 section 2.5: no less
_LARGE = 20_000  # bytes; parsing more would hold the event loop for over 5 ms
_KEPT = 32 * 1024 * 1024  # bytes of robots.txt whose rules are kept; more than 10,000 hosts'
_ENTRY = 1024  # bytes; what the rules of an empty robots.txt count for
_REDIRECTS = 5  # in a row; RFC 9309 section 2.3.1.2: no less

# A line that names an agent, however Protego reads it, and what names it.
_AGENT_LINE = re.compile(
    r"\s*user(?:-|\s*)agent(?:\s*:|\s(?=[^:]*$))\s*([^\s#][^#]*)", re.IGNORECASE
)
# RFC 9309 section 2.2.1 has letters, "-" and "_"; many names have digits, too.
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_BROWSER = re.compile(r"Mozilla/\S+\s*\(compatible;\s*", re.IGNORECASE)


def product_token(agent: str | bytes) -> str:
    """Return the name of a crawler in a robots.txt, in lower case.

    Parameters
    ----------
    agent : a ``User-Agent`` header, or the name in a line of a robots.txt: the product token
        comes first, or after ``Mozilla/5.0 (compatible;``. A version and what follows are dropped

    Returns
    -------
    An empty text if it names nobody.
    """
    agent = (agent.decode("latin-1") if isinstance(agent, bytes) else agent).strip()
    browser = _BROWSER.match(agent)
    token = _TOKEN.match(agent, browser.end() if browser else 0)
    return token[0].lower() if token else ""


class RobotRules(ProtegoRobotParser):
    """The rules of a robots.txt, with its groups matched as in RFC 9309 (section 2.2.1).

    A group is for the crawlers whose whole product token it names, in upper or lower case.
    Protego alone looks for the names of the file anywhere in the ``User-Agent`` header. So it
    gets both with a slash on each side.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> Self:
        """Read a robots.txt."""
        lines = robotstxt_body.decode("utf-8-sig", "ignore").splitlines()
        whole = "\n".join(map(_with_whole_name, lines))
        return super().from_crawler(crawler, whole.encode())

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Tell whether a crawler may fetch a URL."""
        return super().allowed(url, _whole_name(user_agent))

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """Return the seconds that a crawler is asked to wait between two requests, if any."""
        return super().crawl_delay(_whole_name(user_agent))


def _whole_name(agent: str | bytes) -> str:
    return f"/{product_token(agent)}/"


def _with_whole_name(line: str) -> str:
    named = _AGENT_LINE.match(line)
    if named is None:
        return line
    if named[1].split()[0] == "*":
        return "User-agent: *"
    return f"User-agent: /{product_token(named[1]) or '?'}/"  # no token has a question mark


class RobotsUnreachableError(UnusableError, DownloadFailedError):
    """A host's robots.txt cannot be fetched: it must not be crawled (RFC 9309, 2.3.1.4).

    Scrapy retries it like any download that failed.

    Attributes
    ----------
    cause : why there is no robots.txt, as of a page; ``robots.txt`` after a status of the host
    retry_after : seconds the host asked to wait, None if it did not
    """

    def __init__(
        self, why: str, retry_after: float | None = None, cause: str = "robots.txt"
    ) -> None:
        super().__init__(why)
        self.cause = cause
        self.retry_after = retry_after

    @classmethod
    def after(cls, error: Exception) -> Self:
        """Return what to raise when robots.txt could not be fetched."""
        name, _, details = describe_error(error).partition(": ")
        return cls(f"robots.txt: {details}" if details else "robots.txt", cause=name)


class _TooFarError(Exception):
    """A robots.txt is redirected in a circle, or more often than is followed."""


class _Known(NamedTuple):
    """A robots.txt: its rules (None: everything is allowed), its size, the site maps it names."""

    rules: RobotParser | None = None
    size: int = 0
    site_maps: Sequence[str] = ()

    def allows(self, url: str, agent: str) -> bool:
        return self.rules is None or self.rules.allowed(url, agent)


class RobotsMiddleware(Component):
    """Requests the robots.txt of every host before anything else, and obeys it.

    A missing file (4xx, a redirect loop) allows everything. If it cannot be fetched (no answer,
    429, 5xx) the request fails and is retried like any other, and robots.txt with it. Of a longer
    file the first 500 KiB count. Five redirects in a row are followed; each is a request with the
    delay of its host, and subject to that host's own robots.txt.

    Scrapy's own takes every failure for permission. Off without ``ROBOTSTXT_OBEY``.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        self._replays = self._crawl.web is not None
        self._parser: type[RobotParser] = load_object(crawler.settings["ROBOTSTXT_PARSER"])
        self._agent = crawler.settings["ROBOTSTXT_USER_AGENT"]
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._size = 0
        self._waiting: dict[str, list[Deferred[None]]] = {}
        self._moved: dict[str, str] = {}  # by origin: whose robots.txt is fetched instead

    async def process_request(self, request: Request) -> None:
        """Let a request pass if its host allows it.

        Raises
        ------
        IgnoreRequest
            The host forbids it.
        RobotsUnreachableError
            Its robots.txt cannot be fetched.
        """
        url = urlparse_cached(request)
        if request.meta.get("dont_obey_robotstxt") or url.scheme not in ("http", "https"):
            return
        known = await self._rules(f"{url.scheme}://{url.netloc}", request)
        if not known.allows(request.url, self._token(request)):
            self._crawler.stats.inc_value("robotstxt/forbidden")
            raise IgnoreRequest("Forbidden by robots.txt")

    def bytes_received(self, data: bytes, request: Request) -> None:
        """Stop the download of a robots.txt that is too long."""
        if ROBOTS in request.meta:
            request.meta[ROBOTS] += len(data)
            if request.meta[ROBOTS] > _MOST:
                raise StopDownload(fail=False)

    def _token(self, request: Request) -> str:
        agent = self._agent or request.headers.get("User-Agent")
        return product_token(agent or self._crawler.settings["USER_AGENT"] or "")

    async def _rules(self, origin: str, request: Request, left: int = _REDIRECTS) -> _Known:
        """Return the robots.txt of `origin`; fetch it first if it is not known.

        At most `left` redirects are followed; `_TooFarError` if they are too few, and another host
        redirects here.
        """
        while origin in self._waiting:
            asked: Deferred[None] = Deferred()
            self._waiting[origin].append(asked)
            await maybe_deferred_to_future(asked)
        if origin in self._known:
            self._known.move_to_end(origin)
            return self._known[origin]
        self._waiting[origin] = []
        try:
            known = await self._asked(origin, request, left)
            self._keep(origin, known)
            if known.site_maps:
                self._crawl.add_site_maps(origin, known.site_maps)
        finally:
            for waiting in self._waiting.pop(origin):
                waiting.callback(None)
        return known

    async def _asked(self, origin: str, request: Request, left: int) -> _Known:
        try:
            return await self._ask(origin, request, left)
        except _TooFarError:
            if left < _REDIRECTS:
                raise
            return _Known()

    async def _ask(self, origin: str, request: Request, left: int) -> _Known:
        url = f"{origin}/robots.txt"
        seen = {url}
        while (response := await self._fetch(url)) is not None:
            target = redirect_target(response)
            if target is None:
                return await self._taken(response, request)
            if left == 0 or target in seen:
                raise _TooFarError
            left -= 1
            self._crawler.stats.inc_value("robotstxt/redirect_count")
            elsewhere = f"{target.partition(':')[0]}://{host(target)}"
            if elsewhere != origin:
                known = await self._rules_elsewhere(origin, elsewhere, request, left)
                if target == f"{elsewhere}/robots.txt":
                    return known
                if not known.allows(target, self._token(request)):
                    break
            url = target
            seen.add(url)
        return _Known()

    async def _rules_elsewhere(
        self, origin: str, elsewhere: str, request: Request, left: int
    ) -> _Known:
        """Return the robots.txt of another host; hosts that wait for each other are a circle."""
        after: str | None = elsewhere
        while after is not None:
            if after == origin:
                raise _TooFarError
            after = self._moved.get(after)
        self._moved[origin] = elsewhere
        try:
            return await self._rules(elsewhere, request, left)
        finally:
            del self._moved[origin]

    async def _fetch(self, url: str) -> Response | None:
        """Return the answer for a robots.txt; None: it may not be fetched."""
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
            raise RobotsUnreachableError.after(error) from error
        stats.inc_value("robotstxt/response_count")
        stats.inc_value(f"robotstxt/response_status_count/{response.status}")
        if (response.status == 429 or response.status >= 500) and not self._replays:
            raise RobotsUnreachableError(f"HTTP {response.status}", retry_after_of(response))
        return response

    async def _taken(self, response: Response, request: Request) -> _Known:
        if not 200 <= response.status < 300:
            return _Known()
        rules = await self._read(response)
        site_maps: list[str] = []
        if self._crawl.config.discover:
            text = response.body[:_MOST].decode("utf-8", "replace")
            site_maps = [*islice(site_maps_in_robots(text, response.url), MAX_FILES)]
        if _PARSED is not None:
            await self._crawler.signals.send_catch_log_async(
                _PARSED, robotparser=rules, request=request
            )
        return _Known(rules, min(len(response.body), _MOST), site_maps)

    async def _read(self, response: Response) -> RobotParser:
        body = response.body
        if len(body) > _MOST:
            body = body[: body.rfind(b"\n", 0, _MOST) + 1]  # no rule by halves
        if len(body) <= _LARGE:
            return build_from_crawler(self._parser, self._crawler, body)
        parsing = deferToThread(build_from_crawler, self._parser, self._crawler, body)
        return await maybe_deferred_to_future(parsing)

    def _keep(self, origin: str, known: _Known) -> None:
        """Keep rules, and drop those that were used least recently."""
        self._known[origin] = known
        self._size += known.size + _ENTRY
        while self._size > _KEPT and len(self._known) > 1:
            _, forgotten = self._known.popitem(last=False)
            self._size -= forgotten.size + _ENTRY


def _robots_request(url: str) -> Request:
    return Request(
        url,
        headers={"Accept-Encoding": "identity"},  # so that what is broken off can be read
        meta={
            "dont_obey_robotstxt": True,
            "dont_redirect": True,  # each redirect is a request with the delay of its own host
            "download_slot": host(url),
            "dont_retry": True,  # it is asked for again with the page it was asked for
            "download_maxsize": 0,  # broken off instead, and read as far as it goes
            ROBOTS: 0,
        },
        priority=1000,
        callback=NO_CALLBACK,
    )
