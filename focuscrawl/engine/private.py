"""Everything that focuscrawl uses of Scrapy and Twisted beyond their documented interfaces.

No other module does (`tests/unit/test_engine_private.py` checks that), so what a new version of
either may break is on this page. All was tested with Scrapy 2.15 to 2.19 and Twisted 25.5 to
26.10: ``make test`` runs the newest of them and ``make test-oldest`` the oldest. "Until" names
what would make a use public, or unnecessary.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from scrapy import Spider
from scrapy.commands import crawl
from scrapy.responsetypes import responsetypes
from scrapy.utils import defer
from scrapy.utils.defer import deferred_from_coro
from twisted.python.failure import Failure
from twisted.web._newclient import HEADER, STATUS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scrapy import Request
    from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
    from scrapy.crawler import Crawler, CrawlerProcessBase
    from scrapy.http import Headers, Response
    from scrapy.settings import Settings

    Download = Callable[[Request], Awaitable[Response]]


# The engine ------------------------------------------------------------------------------------


def wake(crawler: Crawler) -> None:
    """Make the engine ask the scheduler for requests now, not at its heartbeat of five seconds.

    Uses: ``engine._slot.nextcall``.
    Until: a scheduler can set when it will have a request, or there is a public call.
    """
    slot = crawler.engine._slot
    if slot is not None:
        slot.nextcall.schedule()


def is_closing(crawler: Crawler) -> bool:
    """Tell whether the spider only waits for the requests that are under way.

    Uses: ``engine._slot.closing``.
    Until: there is a signal for the beginning of the end; ``spider_closed`` comes at the end.
    """
    slot = crawler.engine._slot
    return slot is not None and slot.closing is not None


def is_idle(crawler: Crawler) -> bool:
    """Tell whether no request is with the downloader, and no answer or item with the scraper.

    Requests of `engine.download_async`, for a robots.txt say, count; what the scheduler holds
    does not. True before the spider is opened and after it is closed.

    Uses: ``engine._slot.inprogress``, ``engine.scraper.slot``.
    Until: ``engine.spider_is_idle`` is documented, and does not ask the scheduler as well.
    """
    slot, scraping = crawler.engine._slot, crawler.engine.scraper.slot
    return slot is None or not (slot.inprogress or (scraping and not scraping.is_idle()))


def has_start_failed(crawler: Crawler) -> bool:
    """Tell whether the spider's ``start`` raised an error; it is in the log.

    Uses: ``engine._start_error``, which not all of them have.
    Until: ``spider_idle`` gets the reason that the spider would be closed for.
    """
    return bool(getattr(crawler.engine, "_start_error", False))


def is_paused(crawler: Crawler) -> bool:
    """Tell whether ``engine.pause``, which is documented, was called last.

    Uses: ``engine.paused``.
    Until: the attribute is documented, too.
    """
    return bool(crawler.engine.paused)


def close_spider(crawler: Crawler, reason: str) -> None:
    """End the crawl under the name of `reason`, when what is under way is done.

    Uses: ``engine.close_spider_async``.
    Until: the method is documented; raising ``CloseSpider`` works in some callbacks only.
    """
    deferred_from_coro(crawler.engine.close_spider_async(reason=reason))


def slot_delay(crawler: Crawler, slot: str) -> float | None:
    """Return the seconds between two requests of a downloader slot; None: it has none yet.

    AutoThrottle changes them as it goes.

    Uses: ``engine.downloader.slots``.
    Until: AutoThrottle reports the delays it sets, by a signal or in ``request.meta``.
    """
    found = crawler.engine.downloader.slots.get(slot)
    return None if found is None else found.delay


def wrap_downloads(crawler: Crawler, wrapper: Callable[[Download, Request], Any]) -> None:
    """Make all downloads by ``await wrapper(download, request)``, whichever their handler is.

    Uses: ``engine.downloader.handlers.download_request_async``.
    Until: requests under way can be cancelled, or a handler can be given one to stand before.
    """
    handlers = crawler.engine.downloader.handlers
    download = handlers.download_request_async

    async def wrapped(request: Request) -> Response:
        response: Response = await wrapper(download, request)
        return response

    handlers.download_request_async = wrapped  # type: ignore[method-assign]


def shorten_callback_delay() -> None:
    """Make Scrapy pause for a millisecond before a callback, not for a tenth of a second.

    A crawl that makes one request at a time would spend most of its time in pauses.

    Uses: ``scrapy.utils.defer._DEFER_DELAY``, which 2.19 does without.
    Until: the oldest Scrapy that is supported does.
    """
    if hasattr(defer, "_DEFER_DELAY"):
        defer._DEFER_DELAY = 0.001


# HTTP ------------------------------------------------------------------------------------------


def limit_connections(
    handler: HTTP11DownloadHandler,
    most: int,
    error: Callable[[], Exception],
    check: Callable[[str], None] | None = None,
) -> None:
    """Make a handler send each request once, and hang up on endless headers and wrong servers.

    Twisted reads headers, early hints included, for as long as a server sends some. It repeats a
    request at once where a kept connection ends instead of an answer, without the host's delay.

    Parameters
    ----------
    most, error : bytes of the headers of an answer; raised for longer ones
    check : called with the address of a server before anything is sent to it, not even for TLS;
        what it raises is the outcome of the request

    Uses: ``handler._pool``; the pool's ``_factory`` and ``retryAutomatically``;
    ``HTTP11ClientProtocol._parser``, ``._giveUp``.
    Until: Twisted bounds the headers of a response, and Scrapy tells of connections and retries.
    """
    pool: Any = handler._pool
    pool.retryAutomatically = False
    factory_class: Any = pool._factory

    class BoundedFactory(factory_class):  # type: ignore[misc]
        """Makes protocols that count what comes before a body, for servers that passed."""

        def buildProtocol(self, addr: Any) -> Any:  # noqa: N802 - Twisted's name
            if check is not None:
                check(str(addr.host))
            protocol = super().buildProtocol(addr)
            _count_headers(protocol, most, error)
            return protocol

    pool._factory = BoundedFactory


def _count_headers(protocol: Any, most: int, error: Callable[[], Exception]) -> None:
    received, counted, take = 0, None, protocol.dataReceived

    def data_received(data: bytes) -> None:
        nonlocal received, counted
        parser = protocol._parser  # of the answer under way
        if parser is None or parser.state not in (STATUS, HEADER):
            take(data)
            return
        if parser is not counted:  # the next answer of a kept connection
            received, counted = 0, parser
        received += len(data)
        if received <= most:
            take(data)
            return
        protocol._giveUp(Failure(error()))  # type: ignore[no-untyped-call]
        protocol.transport.abortConnection()  # whatever is still to come

    protocol.dataReceived = data_received


def response_class(headers: Headers, url: str, body: bytes) -> type[Response]:
    """Return the class that Scrapy's own handlers would give an answer: HTML, XML, text, ...

    Uses: ``scrapy.responsetypes.responsetypes``.
    Until: the function is documented for those who write download handlers.
    """
    return responsetypes.from_args(headers=headers, url=url, body=body)


# Spiders and the command -----------------------------------------------------------------------


def has_default_callback(spider: Spider) -> bool:
    """Tell whether a spider takes pages whose requests name no callback.

    Uses: ``Spider._parse``, which `CrawlSpider` and others define.
    Until: Scrapy's generic spiders define ``parse``.
    """
    kind = type(spider)
    return kind.parse is not Spider.parse or kind._parse is not Spider._parse


def is_started_by_command(spider: Spider) -> bool:
    """Tell whether Scrapy gave a spider the requests of a command that looks at a page or two.

    ``fetch``, ``parse``, ``check`` and ``bench`` put a ``start`` of their own in place of the
    spider's.

    Uses: the modules of the commands.
    Until: an add-on can ask which command it runs in.
    """
    return str(getattr(spider.start, "__module__", "")).startswith("scrapy.commands.")


def is_scrapy_program() -> bool:
    """Tell whether the process is the program ``scrapy``, and no one else's.

    Uses: ``scrapy.cmdline`` is imported by the program alone.
    Until: an add-on can end the command it runs in.
    """
    return "scrapy.cmdline" in sys.modules


def run_command(words: list[str], settings: Settings) -> None:
    """Run a command of Scrapy's, with settings of one's own, and end the process with its code.

    Uses: ``scrapy.cmdline.execute``.
    Until: the function is documented.
    """
    from scrapy.cmdline import execute  # noqa: PLC0415 - marks the process, see above

    execute(words, settings)


#: ``scrapy crawl``, whose options and arguments our own command takes over.
#: Until: a command can ask for them without being one.
CrawlCommand = crawl.Command


def spider_names(process: CrawlerProcessBase) -> list[str]:
    """Return the spiders of the project.

    Uses: ``process.spider_loader``.
    Until: the attribute is documented.
    """
    return process.spider_loader.list()


def has_failed_to_start(process: CrawlerProcessBase) -> bool:
    """Tell whether a crawler of the process could not be set up.

    Uses: ``process.bootstrap_failed``.
    Until: the attribute is documented.
    """
    return process.bootstrap_failed


# The log ---------------------------------------------------------------------------------------


def hide_setup_messages() -> None:
    """Log Scrapy's own set-up from level WARNING on.

    Filters outlive the configuration of the log that follows, levels do not.

    Uses: the names of its loggers.
    Until: it logs that at level DEBUG.
    """
    for name in ("scrapy.addons", "scrapy.core.engine", "scrapy.middleware", "scrapy.utils.log"):
        logging.getLogger(name).addFilter(_is_warning)


def _is_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


def is_not_settings_list(record: logging.LogRecord) -> bool:
    """Leave Scrapy's list of all settings out of a log: what users have set may be a password.

    Uses: the words it begins with, in the logger ``scrapy.crawler``.
    Until: Scrapy can keep settings secret.
    """
    return not str(record.msg).startswith("Overridden settings")
