"""Everything that focuscrawl uses of Scrapy and Twisted beyond their documented interfaces.

No other module does (`tests/unit/test_engine_private.py` holds them to it), so what a new version
of either may break is on this page. Each use names the versions it was tested with: ``make test``
runs the newest of them and ``make test-oldest`` the oldest. "Until" says what would make it
public, or unnecessary.
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
    """Have the engine ask the scheduler for requests now, not at its heartbeat of five seconds.

    Tested: Scrapy 2.15 to 2.19 (``engine._slot.nextcall``).
    Until: a scheduler can say when it will have a request, or a public call asks it.
    """
    slot = crawler.engine._slot
    if slot is not None:
        slot.nextcall.schedule()


def is_closing(crawler: Crawler) -> bool:
    """Tell whether the spider only waits for the requests that are under way.

    Tested: Scrapy 2.15 to 2.19 (``engine._slot.closing``).
    Until: there is a signal for the beginning of the end; ``spider_closed`` comes at the end.
    """
    slot = crawler.engine._slot
    return slot is not None and slot.closing is not None


def nothing_under_way(crawler: Crawler) -> bool:
    """Tell whether no request is with the downloader, and no answer or item with the scraper.

    Requests of `engine.download_async`, for a robots.txt say, count; what the scheduler holds
    does not. True before the spider is opened and after it is closed.

    Tested: Scrapy 2.15 to 2.19 (``engine._slot.inprogress``, ``engine.scraper.slot``).
    Until: ``engine.spider_is_idle`` is documented, and does not ask the scheduler as well.
    """
    slot, scraping = crawler.engine._slot, crawler.engine.scraper.slot
    return slot is None or not (slot.inprogress or (scraping and not scraping.is_idle()))


def start_failed(crawler: Crawler) -> bool:
    """Tell whether the spider's ``start`` raised an error; it is in the log.

    Tested: Scrapy 2.15 to 2.19 (``engine._start_error``, which not all of them have).
    Until: ``spider_idle`` is told the reason that the spider would be closed for.
    """
    return bool(getattr(crawler.engine, "_start_error", False))


def is_paused(crawler: Crawler) -> bool:
    """Tell whether ``engine.pause``, which is documented, was called last.

    Tested: Scrapy 2.15 to 2.19 (``engine.paused``).
    Until: the attribute is documented, too.
    """
    return bool(crawler.engine.paused)


def close_spider(crawler: Crawler, reason: str) -> None:
    """End the crawl under the name of `reason`, when what is under way is done.

    Tested: Scrapy 2.15 to 2.19 (``engine.close_spider_async``).
    Until: the method is documented; raising ``CloseSpider`` works in some callbacks only.
    """
    deferred_from_coro(crawler.engine.close_spider_async(reason=reason))


def slot_delay(crawler: Crawler, slot: str) -> float | None:
    """Return the seconds between two requests of a downloader slot; None: it has none yet.

    AutoThrottle changes them as it goes.

    Tested: Scrapy 2.15 to 2.19 (``engine.downloader.slots``).
    Until: AutoThrottle tells the delays it sets, by a signal or in ``request.meta``.
    """
    found = crawler.engine.downloader.slots.get(slot)
    return None if found is None else found.delay


def wrap_downloads(crawler: Crawler, wrapper: Callable[[Download, Request], Any]) -> None:
    """Have all downloads made by ``await wrapper(download, request)``, whichever their handler is.

    Tested: Scrapy 2.15 to 2.19 (``engine.downloader.handlers.download_request_async``).
    Until: requests under way can be cancelled, or a handler can be given one to stand before.
    """
    handlers = crawler.engine.downloader.handlers
    download = handlers.download_request_async

    async def wrapped(request: Request) -> Response:
        response: Response = await wrapper(download, request)
        return response

    handlers.download_request_async = wrapped  # type: ignore[method-assign]


def pause_briefly() -> None:
    """Have Scrapy pause for a millisecond before a callback, not for a tenth of a second.

    It lets what has come in be read first. Of a crawl that makes one request at a time, most of
    the time would be pauses.

    Tested: Scrapy 2.15 to 2.19 (``scrapy.utils.defer._DEFER_DELAY``, which 2.19 does without).
    Until: the oldest Scrapy that is supported does.
    """
    if hasattr(defer, "_DEFER_DELAY"):
        defer._DEFER_DELAY = 0.001


# HTTP ------------------------------------------------------------------------------------------


def limit_headers(
    handler: HTTP11DownloadHandler, most: int, error: Callable[[], Exception]
) -> None:
    """Have a handler hang up, with `error`, on answers whose headers are longer than `most` bytes.

    Twisted reads headers, early hints included, for as long as a server sends some.

    Tested: Scrapy 2.15 to 2.19 (``handler._pool``), Twisted 25.5 and 26.10 (the pool's
    ``_factory``; ``HTTP11ClientProtocol._parser``, ``._giveUp``).
    Until: Twisted bounds the headers of a response, as it bounds those of a request.
    """
    pool: Any = handler._pool
    factory_class: Any = pool._factory

    class BoundedFactory(factory_class):  # type: ignore[misc]
        """Makes protocols that count what comes before a body."""

        def buildProtocol(self, addr: Any) -> Any:  # noqa: N802 - Twisted's name
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


def never_repeat(handler: HTTP11DownloadHandler) -> None:
    """Have a handler make each request once.

    Twisted asks again, at once, where a kept connection ends instead of an answer: neither the
    delay of the host nor what else is kept with a request is known there.

    Tested: Scrapy 2.15 to 2.19 (``handler._pool``; what is set there is documented by Twisted).
    Until: Scrapy has a setting for it, or its handler does not.
    """
    handler._pool.retryAutomatically = False


def check_peers(handler: HTTP11DownloadHandler, check: Callable[[str], None]) -> None:
    """Have a handler call `check` with the address of every server that it has connected to.

    What that raises is what becomes of the request. The connection ends, and nothing is sent on
    it, not even to begin with TLS.

    Tested: Scrapy 2.15 to 2.19 (``handler._pool``), Twisted 25.5 and 26.10 (the pool's
    ``_factory``).
    Until: Scrapy or Twisted tells of a connection before it uses it.
    """
    pool: Any = handler._pool
    factory_class: Any = pool._factory

    class CheckingFactory(factory_class):  # type: ignore[misc]
        """Makes protocols for servers that passed the check."""

        def buildProtocol(self, addr: Any) -> Any:  # noqa: N802 - Twisted's name
            check(str(addr.host))
            return super().buildProtocol(addr)

    pool._factory = CheckingFactory


def response_class(headers: Headers, url: str, body: bytes) -> type[Response]:
    """Return the class that Scrapy's own handlers would give an answer: HTML, XML, text, ...

    Tested: Scrapy 2.15 to 2.19 (``scrapy.responsetypes.responsetypes``).
    Until: the function is documented for those who write download handlers.
    """
    return responsetypes.from_args(headers=headers, url=url, body=body)


# Spiders and the command -----------------------------------------------------------------------


def has_default_callback(spider: Spider) -> bool:
    """Tell whether a spider takes pages whose requests name no callback.

    Tested: Scrapy 2.15 to 2.19 (``Spider._parse``, which `CrawlSpider` and others define).
    Until: Scrapy's generic spiders define ``parse``.
    """
    kind = type(spider)
    return kind.parse is not Spider.parse or kind._parse is not Spider._parse


def is_started_by_command(spider: Spider) -> bool:
    """Tell whether Scrapy gave a spider the requests of a command that looks at a page or two.

    ``fetch``, ``parse``, ``check`` and ``bench`` put a ``start`` of their own in place of the
    spider's.

    Tested: Scrapy 2.15 to 2.19 (the modules of the commands).
    Until: an add-on can ask which command it runs in.
    """
    return str(getattr(spider.start, "__module__", "")).startswith("scrapy.commands.")


def is_scrapys_program() -> bool:
    """Tell whether the process is the program ``scrapy``, and no one else's.

    Tested: Scrapy 2.15 to 2.19 (``scrapy.cmdline`` is imported by the program alone).
    Until: an add-on can end the command it runs in.
    """
    return "scrapy.cmdline" in sys.modules


def run_command(words: list[str], settings: Settings) -> None:
    """Run a command of Scrapy's, with settings of one's own, and end the process with its code.

    Tested: Scrapy 2.15 to 2.19 (``scrapy.cmdline.execute``).
    Until: the function is documented.
    """
    from scrapy.cmdline import execute  # noqa: PLC0415 - marks the process, see above

    execute(words, settings)


#: ``scrapy crawl``, whose options and arguments our own command takes over.
#: Tested: Scrapy 2.15 to 2.19. Until: a command can ask for them without being one.
CrawlCommand = crawl.Command


def spider_names(process: CrawlerProcessBase) -> list[str]:
    """Return the spiders of the project.

    Tested: Scrapy 2.15 to 2.19 (``process.spider_loader``).
    Until: the attribute is documented.
    """
    return process.spider_loader.list()


def has_failed_to_start(process: CrawlerProcessBase) -> bool:
    """Tell whether a crawler of the process could not be set up.

    Tested: Scrapy 2.15 to 2.19 (``process.bootstrap_failed``).
    Until: the attribute is documented.
    """
    return process.bootstrap_failed


# The log ---------------------------------------------------------------------------------------


def leave_set_up_out_of_log() -> None:
    """Have what Scrapy says of its own set-up logged from level WARNING on.

    Filters outlive the configuration of the log that follows, levels do not.

    Tested: Scrapy 2.15 to 2.19 (the names of its loggers).
    Until: it says that at level DEBUG.
    """
    for name in ("scrapy.addons", "scrapy.core.engine", "scrapy.middleware", "scrapy.utils.log"):
        logging.getLogger(name).addFilter(_is_warning)


def _is_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


def is_no_list_of_settings(record: logging.LogRecord) -> bool:
    """Leave Scrapy's list of all settings out of a log: what users have set may be a password.

    Tested: Scrapy 2.15 to 2.19 (the words it begins with, in the logger ``scrapy.crawler``).
    Until: Scrapy can be told which settings are secret.
    """
    return not str(record.msg).startswith("Overridden settings")
