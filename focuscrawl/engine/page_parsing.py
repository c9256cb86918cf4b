"""Parses pages and scores links without blocking the event loop."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.threads import deferToThread

from focuscrawl.crawl.visit import TOO_HARD
from focuscrawl.engine.visits import describe_error
from focuscrawl.errors import RequestCancelledError, WorkerError
from focuscrawl.page import ParseCost, ParseLimitError, ParserProcess
from focuscrawl.page.parse import SMALL_SIZE

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from focuscrawl.crawl import Crawl, PageVisit
    from focuscrawl.page import PageView


logger = logging.getLogger(__name__)

# The apprentice scores 40 links, or reads 2,500 words, in a millisecond.
_MANY_LINKS = 500
_WORDS_A_LINK = 60
_MAX_IN_THREAD = 1_700_000  # bytes; decoding a larger page blocks all threads for too long


async def expand_visit(crawl: Crawl, visit: PageVisit) -> None:
    """Score and queue the links of a page like `Crawl.expand`; the caller holds the `VisitLock`.

    Links of a long page of the live Web are scored in a thread and queued in several steps. In a
    replay, links are not scored in a thread: there are no open connections to serve, and a
    recording must not be read in two threads.
    """
    if crawl.web is not None or visit.view is None or not _is_long(visit.view):
        crawl.expand(visit)
        return
    await _yield_to_event_loop()
    page = crawl.start_expansion(visit)
    if page is None:
        return
    in_thread = deferToThread(crawl.score, visit, page)
    scored = await maybe_deferred_to_future(in_thread)
    for _ in crawl.finish_expansion(visit, page, scored):
        await _yield_to_event_loop()


def _is_long(view: PageView) -> bool:
    return len(view.links) + len(view.tokens) // _WORDS_A_LINK > _MANY_LINKS


async def _yield_to_event_loop() -> None:
    later: Deferred[None] = Deferred()
    call_later(0, later.callback, None)
    await maybe_deferred_to_future(later)


class PageParsing:
    """Parses small pages immediately, large pages in a thread, complex pages in a child process.

    Site maps, feeds and PDF files are always parsed in the child process. The thread and the child
    process parse only one page at a time, because parsing several pages at once needs more memory
    and is no faster. A replay also parses large pages immediately, because blocking the event loop
    does no harm in a replay.
    """

    def __init__(self, crawler: Crawler, crawl: Crawl) -> None:
        self._crawl = crawl
        self._parser_process = ParserProcess()
        replays = self._crawl.web is not None
        self._at_once = (
            (ParseCost.LARGE, _MAX_IN_THREAD) if replays else (ParseCost.SMALL, SMALL_SIZE)
        )
        self._cancelled = False
        self._thread_lock = DeferredLock()
        crawler.signals.connect(self.close, signal=signals.spider_closed)

    async def parse(self, visit: PageVisit) -> None:
        """Parse the fetched page; set the visit's ``view``, or the visit's ``error`` on failure.

        Raises
        ------
        RequestCancelledError
            The crawl stops, and the URL is queued again.
        WorkerError
            The child process cannot start. The crawl is halted, and the URL is queued again.
        """
        try:
            kind = self._crawl.document_kind(visit)
            if kind is not None:
                await self._run_in_thread(self._read_blocking, visit, kind)
            elif not self._parse_at_once(visit) and self._crawl.is_page(visit):
                await self._run_in_thread(self._parse_blocking, visit)
        except ParseLimitError:
            if self._cancelled:
                self._crawl.requeue(visit.url_id, time.monotonic())
                raise RequestCancelledError("the crawl ends") from None
            visit.error = TOO_HARD
        except WorkerError:
            self._crawl.halt(visit.url_id, time.monotonic())
            raise
        except Exception as error:
            logger.exception("cannot parse %s", visit.url)
            visit.error = describe_error(error)

    def cancel(self) -> None:
        """Stop parsing in the thread and the child process, because the crawl has to stop."""
        self._cancelled = True
        self._parser_process.close()

    def close(self) -> None:
        """Stop the child process."""
        self._parser_process.close()

    def _parse_at_once(self, visit: PageVisit) -> bool:
        most, size = self._at_once
        if visit.bytes > size:
            return False
        try:
            self._crawl.parse(visit, most)
        except ParseLimitError:
            return False
        return True

    async def _run_in_thread(self, parse: Callable[..., None], *given: object) -> None:
        await maybe_deferred_to_future(self._thread_lock.acquire())
        try:
            if self._cancelled:
                raise ParseLimitError
            await maybe_deferred_to_future(deferToThread(parse, *given))
        finally:
            self._thread_lock.release()

    def _read_blocking(self, visit: PageVisit, kind: str) -> None:
        self._crawl.read(visit, kind, self._parser_process.parse_document)

    def _parse_blocking(self, visit: PageVisit) -> None:
        if visit.bytes <= _MAX_IN_THREAD:
            with suppress(ParseLimitError):
                self._crawl.parse(visit, ParseCost.LARGE)
                return
        download = visit.download
        visit.view = self._parser_process.parse_page(
            download.body,
            visit.url,
            encoding=download.encoding,
            robots=download.robots,
            references=download.header_links.references,
            agent=self._crawl.config.agent,
        )
