"""robots.txt, as RFC 9309 has it, also where it is huge, slow, broken or not there."""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.exceptions import DownloadFailedError, IgnoreRequest, NotConfigured, StopDownload
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler, load_object
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from focuscrawl.engine.component import Component
from focuscrawl.engine.download_errors import PrivateAddressError, UnusableError, cause
from focuscrawl.engine.meta import ROBOTS
from focuscrawl.errors import GivenUpError
from focuscrawl.frontier.host_backoff import read_retry_after
from focuscrawl.page.site_maps import named_in_robots

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser

_PARSED = getattr(signals, "robots_parsed", None)  # documented since Scrapy 2.18
_MOST = 500 * 1024  # bytes; RFC 9309 section 2.5: no less
_LARGE = 20_000  # bytes; parsing more would hold the event loop for over 5 ms
_KEPT = 32 * 1024 * 1024  # bytes of robots.txt whose rules are kept; more than 10,000 hosts'
_ENTRY = 1024  # bytes; what the rules of an empty robots.txt count for


class RobotsUnreachableError(UnusableError, DownloadFailedError):
    """There is no telling what a host forbids: it must not be crawled (RFC 9309, 2.3.1.4).

    Scrapy retries it like any download that failed.

    Attributes
    ----------
    cause : why there is no robots.txt, as of a page; ``robots.txt`` if that is what the host said
    retry_after : seconds the host asked to wait, None if it did not say
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
        name, _, details = cause(error).partition(": ")
        return cls(f"robots.txt: {details}" if details else "robots.txt", cause=name)


class RobotsMiddleware(Component):
    """Asks every host for its robots.txt before anything else, and obeys it.

    A file that is not there (4xx, a redirect loop) allows everything. Where it cannot be had (no
    answer, 429, 5xx) the request fails and is retried like any that brings no answer, and
    robots.txt with it. Of a file that is longer than 500 KiB the first 500 KiB count.

    Unlike Scrapy's own, which takes every failure for permission. Off without ``ROBOTSTXT_OBEY``.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        self._replays = self._crawl.web is not None
        self._parser: type[RobotParser] = load_object(crawler.settings["ROBOTSTXT_PARSER"])
        self._agent = crawler.settings["ROBOTSTXT_USER_AGENT"]
        self._known: OrderedDict[str, tuple[RobotParser | None, int]] = OrderedDict()
        self._size = 0
        self._waiting: dict[str, list[Deferred[None]]] = {}

    async def process_request(self, request: Request) -> None:
        """Let a request pass if its host allows it.

        Raises
        ------
        IgnoreRequest
            The host forbids it.
        RobotsUnreachableError
            The host does not say.
        """
        url = urlparse_cached(request)
        if request.meta.get("dont_obey_robotstxt") or url.scheme not in ("http", "https"):
            return
        rules = await self._rules(f"{url.scheme}://{url.netloc}", request)
        agent = self._agent or request.headers.get("User-Agent") or ""
        agent = agent or self._crawler.settings["USER_AGENT"]
        if rules is not None and not rules.allowed(request.url, agent):
            self._crawler.stats.inc_value("robotstxt/forbidden")
            raise IgnoreRequest("Forbidden by robots.txt")

    def bytes_received(self, data: bytes, request: Request) -> None:
        """Break off a robots.txt that is long enough."""
        if ROBOTS in request.meta:
            request.meta[ROBOTS] += len(data)
            if request.meta[ROBOTS] > _MOST:
                raise StopDownload(fail=False)

    async def _rules(self, origin: str, request: Request) -> RobotParser | None:
        """Return what `origin` is known to forbid, None for nothing; ask it first."""
        while origin in self._waiting:
            asked: Deferred[None] = Deferred()
            self._waiting[origin].append(asked)
            await maybe_deferred_to_future(asked)
        if origin not in self._known:
            self._waiting[origin] = []
            try:
                rules, size = await self._ask(origin, request)
                self._keep(origin, rules, size + _ENTRY)
            finally:
                for waiting in self._waiting.pop(origin):
                    waiting.callback(None)
            return rules
        self._known.move_to_end(origin)
        return self._known[origin][0]

    async def _ask(self, origin: str, request: Request) -> tuple[RobotParser | None, int]:
        """Fetch and read a robots.txt; return its rules and its length."""
        stats = self._crawler.stats
        stats.inc_value("robotstxt/request_count")
        try:
            response = await self._crawler.engine.download_async(_robots_of(origin))
        except (IgnoreRequest, PrivateAddressError):
            return None, 0  # redirected in a circle, or to where nobody may look
        except GivenUpError:
            raise
        except Exception as error:
            stats.inc_value(f"robotstxt/exception_count/{type(error)}")
            if self._replays:
                return None, 0
            raise RobotsUnreachableError.after(error) from error
        stats.inc_value("robotstxt/response_count")
        stats.inc_value(f"robotstxt/response_status_count/{response.status}")
        if (response.status == 429 or response.status >= 500) and not self._replays:
            said = (response.headers.get("Retry-After") or b"").decode("latin-1")
            wait = read_retry_after(said, datetime.now(UTC))
            raise RobotsUnreachableError(f"HTTP {response.status}", wait)
        if not 200 <= response.status < 300:
            return None, 0
        rules = await self._read(response)
        if self._crawl.plan.discover:
            text = response.body[:_MOST].decode("utf-8", "replace")
            self._crawl.told(origin, named_in_robots(text, response.url))
        if _PARSED is not None:
            await self._crawler.signals.send_catch_log_async(
                _PARSED, robotparser=rules, request=request
            )
        return rules, min(len(response.body), _MOST)

    async def _read(self, response: Response) -> RobotParser:
        body = response.body
        if len(body) > _MOST:
            body = body[: body.rfind(b"\n", 0, _MOST) + 1]  # no rule by halves
        if len(body) <= _LARGE:
            return build_from_crawler(self._parser, self._crawler, body)
        parsing = deferToThread(build_from_crawler, self._parser, self._crawler, body)
        return await maybe_deferred_to_future(parsing)

    def _keep(self, origin: str, rules: RobotParser | None, size: int) -> None:
        """Keep rules, and forget those that were asked for least recently."""
        self._known[origin] = (rules, size)
        self._size += size
        while self._size > _KEPT and len(self._known) > 1:
            _, (_, forgotten) = self._known.popitem(last=False)
            self._size -= forgotten


def _robots_of(origin: str) -> Request:
    return Request(
        f"{origin}/robots.txt",
        headers={"Accept-Encoding": "identity"},  # so that what is broken off can be read
        meta={
            "dont_obey_robotstxt": True,
            "dont_retry": True,  # it is asked for again with the page it was asked for
            "download_maxsize": 0,  # broken off instead, and read as far as it goes
            ROBOTS: 0,
        },
        priority=1000,
        callback=NO_CALLBACK,
    )
