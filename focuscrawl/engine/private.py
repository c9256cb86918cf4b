"""All uses of undocumented names of Scrapy and Twisted, which new versions may break.

`tests/unit/test_engine_private.py` checks that no other module uses undocumented names. The uses
were tested with Scrapy 2.15 to 2.19 and Twisted 25.5 to 26.10: ``make test`` uses the newest
versions and ``make test-oldest`` the oldest. The docstring of a function names the change in
Scrapy or Twisted that would make the function unnecessary.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from scrapy import Spider
from scrapy.commands import crawl
from scrapy.responsetypes import responsetypes
from scrapy.utils import defer
from scrapy.utils.defer import deferred_from_coro
from twisted.python.failure import Failure
from twisted.web._newclient import HEADER, STATUS

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
    from scrapy.crawler import Crawler, CrawlerProcessBase
    from scrapy.http import Headers, Response
    from scrapy.settings import Settings
    from twisted.internet.defer import Deferred

    Download = Callable[[Request], Awaitable[Response]]

_FIELD_NAME = re.compile(rb"[\w!#$%&'*+.^`|~-]+")  # RFC 9110 section 5.6.2


# The engine ------------------------------------------------------------------------------------


def wake(crawler: Crawler) -> None:
    """Make the engine call the scheduler now, not only at the next heartbeat (every 5 seconds).

    The function uses ``engine._slot.nextcall``.
    The function is needed until a scheduler can set the time of its next request, or until
    ``nextcall`` is public.
    """
    slot = crawler.engine._slot
    if slot is not None:
        slot.nextcall.schedule()


def is_closing(crawler: Crawler) -> bool:
    """Tell whether the spider is closing and only waits for requests in flight.

    The function uses ``engine._slot.closing``.
    The function is needed until Scrapy sends a signal when closing starts; ``spider_closed`` is
    sent at the end.
    """
    slot = crawler.engine._slot
    return slot is not None and slot.closing is not None


def is_idle(crawler: Crawler) -> bool:
    """Tell whether downloader and scraper have no requests, responses or items.

    Requests made with ``engine.download_async``, for example for a robots.txt, are included.
    Requests in the scheduler are not included. The result is True before the spider opens and
    after the spider has closed.

    The function uses ``engine._slot.inprogress``, ``engine.scraper.slot``.
    The function is needed until ``engine.spider_is_idle`` is documented and does not include the
    scheduler.
    """
    slot, scraping = crawler.engine._slot, crawler.engine.scraper.slot
    return slot is None or not (slot.inprogress or (scraping and not scraping.is_idle()))


def has_start_failed(crawler: Crawler) -> bool:
    """Tell whether the spider's ``start`` raised an error, which Scrapy has logged.

    The function uses ``engine._start_error``, which some versions do not have.
    The function is needed until handlers of ``spider_idle`` get the reason for closing the spider.
    """
    return bool(getattr(crawler.engine, "_start_error", False))


def is_paused(crawler: Crawler) -> bool:
    """Tell whether the engine is paused by the documented ``engine.pause``.

    The function uses ``engine.paused``.
    The function is needed until Scrapy documents ``engine.paused``.
    """
    return bool(crawler.engine.paused)


def close_spider(crawler: Crawler, reason: str) -> None:
    """Close the spider with a reason after the requests in flight have finished.

    The function uses ``engine.close_spider_async``.
    The function is needed until Scrapy documents ``engine.close_spider_async``; raising
    ``CloseSpider`` works in some callbacks only.
    """
    deferred_from_coro(crawler.engine.close_spider_async(reason=reason))


def close_unless_closing(crawler: Crawler) -> Deferred[None] | None:
    """Close an open spider that does not close yet, at the end of the process.

    The function uses ``engine.close_async``.
    The function is needed until ``Crawler.stop_async`` closes a spider whose engine is starting.
    """
    engine = crawler.engine
    if engine._slot is None or is_closing(crawler):
        return None
    return deferred_from_coro(engine.close_async())


def slot_delay(crawler: Crawler, slot: str) -> float | None:
    """Return the delay of a downloader slot in seconds, or None if there is no such slot.

    AutoThrottle may change the delay.
    The function uses ``engine.downloader.slots``.
    The function is needed until AutoThrottle reports delays by a signal or in ``request.meta``.
    """
    found = crawler.engine.downloader.slots.get(slot)
    return None if found is None else found.delay


def wrap_downloads(crawler: Crawler, wrapper: Callable[[Download, Request], Any]) -> None:
    """Replace the download method of all handlers by ``await wrapper(download, request)``.

    The function uses ``engine.downloader.handlers.download_request_async``.
    The function is needed until requests in flight can be cancelled, or handlers can be wrapped.
    """
    handlers = crawler.engine.downloader.handlers
    download = handlers.download_request_async

    async def wrapped(request: Request) -> Response:
        response: Response = await wrapper(download, request)
        return response

    handlers.download_request_async = wrapped  # type: ignore[method-assign]


def shorten_callback_delay() -> None:
    """Reduce Scrapy's delay before a callback from 0.1 seconds to one millisecond.

    A crawl with one request at a time would spend most of its time in the delays before callbacks.

    The function uses ``scrapy.utils.defer._DEFER_DELAY``, which Scrapy 2.19 has removed.
    The function is needed until Scrapy 2.19 is the oldest supported version.
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
    """Limit and repair response headers, check server addresses, and disable Twisted's retries.

    Without the function, Twisted reads headers of any size, including early hints. Twisted also
    refuses a response if one header field is invalid. If a persistent connection was closed,
    Twisted repeats the request immediately, without the host's delay.

    Parameters
    ----------
    most : int
        Bytes of the headers of a response.
    error : callable
        Returns the exception for longer headers.
    check : callable or None
        Called with the address of a server before any data is sent, even for TLS; an exception
        is the outcome of the request.

    The function uses ``handler._pool``; the pool's ``_factory`` and ``retryAutomatically``;
    ``HTTP11ClientProtocol._parser``, ``._giveUp``; the parser's ``lineReceived``,
    ``_partialHeader``.
    The function is needed until Twisted limits the headers of a response and skips invalid fields,
    and Scrapy sends signals for connections.
    """
    pool: Any = handler._pool
    pool.retryAutomatically = False
    factory_class: Any = pool._factory

    class BoundedFactory(factory_class):  # type: ignore[misc]
        """Creates protocols that count the bytes of headers, for servers that passed the check."""

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
        parser = protocol._parser  # of the present response
        if parser is None or parser.state not in (STATUS, HEADER):
            take(data)
            return
        if parser is not counted:  # the next response on a persistent connection
            received, counted = 0, parser
            _skip_invalid_fields(parser)
        received += len(data)
        if received <= most:
            take(data)
            return
        protocol._giveUp(Failure(error()))  # type: ignore[no-untyped-call]
        protocol.transport.abortConnection()  # do not read the rest

    protocol.dataReceived = data_received


def _skip_invalid_fields(parser: Any) -> None:
    """Let a parser of a response skip the header fields that browsers skip."""
    take, skipped = parser.lineReceived, False

    def line_received(line: bytes) -> None:
        nonlocal skipped
        if parser.state != HEADER or line in (b"", b"\r"):
            take(line)
            return
        if line[:1] not in b" \t":
            field = _valid_field(line)
            skipped = field is None
            line = field or b""
        elif parser._partialHeader is None:
            skipped = True  # continues no field
        if not skipped:
            take(line)

    parser.lineReceived = line_received


def _valid_field(line: bytes) -> bytes | None:
    """Return a header field without white space before its colon; None for an invalid field."""
    name, colon, value = line.partition(b":")
    name = name.rstrip(b" \t")
    if not colon or not _FIELD_NAME.fullmatch(name):
        return None
    if name.lower() == b"transfer-encoding":  # the parser knows no other encoding
        return b"Transfer-Encoding: chunked" if b"chunked" in value.lower() else None
    return name + colon + value


def response_class(headers: Headers, url: str, body: bytes) -> type[Response]:
    """Return the class that Scrapy's own handlers use for a response, such as `HtmlResponse`.

    The function uses ``scrapy.responsetypes.responsetypes``.
    The function is needed until Scrapy documents ``responsetypes`` for download handlers.
    """
    return responsetypes.from_args(headers=headers, url=url, body=body)


# Spiders and the command -----------------------------------------------------------------------


def has_default_callback(spider: Spider) -> bool:
    """Tell whether a spider has a callback for requests that name no callback.

    The function uses ``Spider._parse``, which `CrawlSpider` and others define.
    The function is needed until Scrapy's generic spiders define ``parse``.
    """
    kind = type(spider)
    return kind.parse is not Spider.parse or kind._parse is not Spider._parse


def is_started_by_command(spider: Spider) -> bool:
    """Tell whether a Scrapy command has replaced the spider's method ``start``.

    Scrapy's commands ``fetch``, ``parse``, ``check`` and ``bench`` replace the spider's ``start``.

    The function uses the names of the modules of Scrapy's commands.
    The function is needed until an add-on can find the command that is running.
    """
    return str(getattr(spider.start, "__module__", "")).startswith("scrapy.commands.")


def is_scrapy_program() -> bool:
    """Tell whether the process runs the command line program ``scrapy``.

    The function uses the module ``scrapy.cmdline``, which only the program ``scrapy`` imports.
    The function is needed until an add-on can end the command that is running.
    """
    return "scrapy.cmdline" in sys.modules


def run_command(words: list[str], settings: Settings) -> None:
    """Run a Scrapy command with the given settings, and exit with the exit code of the command.

    The function uses ``scrapy.cmdline.execute``.
    The function is needed until Scrapy documents ``scrapy.cmdline.execute``.
    """
    from scrapy.cmdline import execute  # noqa: PLC0415 - marks the process, see above

    execute(words, settings)


#: ``scrapy crawl``, base class of our own command, which has the same options and arguments.
#: Needed until Scrapy documents the class.
CrawlCommand = crawl.Command


def spider_names(process: CrawlerProcessBase) -> list[str]:
    """Return the names of the spiders in the Scrapy project.

    The function uses ``process.spider_loader``.
    The function is needed until Scrapy documents ``process.spider_loader``.
    """
    return process.spider_loader.list()


def has_failed_to_start(process: CrawlerProcessBase) -> bool:
    """Tell whether the set-up of any Scrapy crawler in the process failed.

    The function uses ``process.bootstrap_failed``.
    The function is needed until Scrapy documents ``process.bootstrap_failed``.
    """
    return process.bootstrap_failed


# The log ---------------------------------------------------------------------------------------


def hide_setup_messages() -> None:
    """Suppress Scrapy's log messages below WARNING about its set-up.

    The function adds log filters, because Scrapy sets the log levels later.

    The function uses the names of Scrapy's loggers.
    The function is needed until Scrapy logs its set-up messages at level DEBUG.
    """
    for name in ("scrapy.addons", "scrapy.core.engine", "scrapy.middleware", "scrapy.utils.log"):
        logging.getLogger(name).addFilter(_is_warning)


def _is_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


def is_not_settings_list(record: logging.LogRecord) -> bool:
    """Return False for the log record that lists changed settings, which can contain passwords.

    The function uses the first words of the message of the logger ``scrapy.crawler``.
    The function is needed until Scrapy can keep settings secret.
    """
    return not str(record.msg).startswith("Overridden settings")
