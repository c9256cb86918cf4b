"""Parsing pages and scoring links where that does not block the event loop."""

from __future__ import annotations

import logging
import time
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
    from collections.abc import Callable

    from scrapy.crawler import Crawler

    from focuscrawl.crawl import Crawl, PageVisit
    from focuscrawl.page import PageView


logger = logging.getLogger(__name__)

# The apprentice takes a millisecond for 40 links, or for 2,500 words.
_MANY_LINKS = 500
_WORDS_A_LINK = 60
_LARGE = 1_700_000  # bytes; decoding more alone holds the interpreter for too long


async def expand_visit(crawl: Crawl, visit: PageVisit) -> None:
    """Do what `Crawl.expand` does; the caller has the turn (`focuscrawl.engine.visits.VisitLock`).

    Links of a long page of the live Web are scored in a thread, and queued some at a time. A
    replay has no connections that wait, and its web is not to be read in two threads.
    """
    if crawl.web is not None or visit.view is None or not _is_long(visit.view):
        crawl.expand(visit)
        return
    await _let_others_in()
    page = crawl.start_expansion(visit)
    if page is None:
        return
    in_thread = deferToThread(crawl.score, visit, page)
    scored = await maybe_deferred_to_future(in_thread)
    for _ in crawl.finish_expansion(visit, page, scored):
        await _let_others_in()


def _is_long(view: PageView) -> bool:
    return len(view.links) + len(view.tokens) // _WORDS_A_LINK > _MANY_LINKS


async def _let_others_in() -> None:
    # until the event loop has looked at its connections
    later: Deferred[None] = Deferred()
    call_later(0, later.callback, None)
    await maybe_deferred_to_future(later)


class PageParsing:
    """Parses small pages at once, large ones in a thread, and the hardest in another process.

    Documents that are no HTML are read in that process, too, whatever their size. Pages that are
    not parsed at once take turns: side by side they would take memory, and no less time. In a
    replay nobody waits for the event loop, so large pages are parsed at once.
    """

    def __init__(self, crawler: Crawler, crawl: Crawl) -> None:
        self._crawl = crawl
        self._apart = ParserProcess()
        replays = self._crawl.web is not None
        self._at_once = (ParseCost.LARGE, _LARGE) if replays else (ParseCost.SMALL, SMALL_SIZE)
        self._given_up = False
        self._one_aside = DeferredLock()
        crawler.signals.connect(self.close, signal=signals.spider_closed)

    async def parse(self, visit: PageVisit) -> None:
        """Set the visit's `view`; a page that cannot be parsed has an `error` instead.

        Raises
        ------
        RequestCancelledError
            The crawl ends; the URL is queued again.
        WorkerError
            The process cannot start; the crawl is halted, the URL queued again.
        """
        try:
            kind = self._crawl.document_kind(visit)
            if kind is not None:
                await self._aside(self._read_blocking, visit, kind)
            elif not self._parse_at_once(visit) and self._crawl.is_page(visit):
                await self._aside(self._parse_blocking, visit)
        except ParseLimitError:
            if self._given_up:
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
        """Stop parsing pages that are not parsed at once: the crawl has to end."""
        self._given_up = True
        self._apart.close()

    def close(self) -> None:
        """Stop the process that parses pages, if there is one."""
        self._apart.close()

    def _parse_at_once(self, visit: PageVisit) -> bool:
        most, size = self._at_once
        if visit.bytes > size:
            return False
        try:
            self._crawl.parse(visit, most)
        except ParseLimitError:
            return False
        return True

    async def _aside(self, parse: Callable[..., None], *given: object) -> None:
        await maybe_deferred_to_future(self._one_aside.acquire())
        try:
            if self._given_up:
                raise ParseLimitError
            await maybe_deferred_to_future(deferToThread(parse, *given))
        finally:
            self._one_aside.release()

    def _read_blocking(self, visit: PageVisit, kind: str) -> None:
        self._crawl.read(visit, kind, self._apart.parse_document)

    def _parse_blocking(self, visit: PageVisit) -> None:
        if visit.bytes <= _LARGE:
            with suppress(ParseLimitError):
                self._crawl.parse(visit, ParseCost.LARGE)
                return
        sent = visit.download
        visit.view = self._apart.parse_page(
            sent.body, visit.url, encoding=sent.encoding, robots=sent.robots
        )
