"""Which pages need a browser, and what they are when their scripts have run."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy import signals

from focuscrawl.crawl.visit import RENDERED
from focuscrawl.engine.binding import crawl_of
from focuscrawl.engine.browser import Browser
from focuscrawl.engine.page_parsing import parsing_of
from focuscrawl.engine.settings_table import BROWSER
from focuscrawl.errors import GivenUpError, WorkerError
from focuscrawl.foundation.urls import host
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from focuscrawl.crawl import PageVisit
    from focuscrawl.page import PageView

_FEW = 30  # words outside of the title: so few are no main text
_IN_VAIN = 3  # pages of a host that scripts add nothing to; no other one is rendered then
_AT_ONCE = 2  # pages that are open in the browser
_GAINED, _SAME = "more", "no more"


class Rendering:
    """Has a browser run the scripts of pages that have no text without them.

    Each time counts against the budget like a fetch; what it came to is an event, by which a
    resumed crawl knows as much.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl = crawl_of(crawler)
        self._parsing = parsing_of(crawler)
        self._browser = Browser(crawler) if BROWSER.of(crawler.settings) else None
        self._few_at_once = asyncio.Semaphore(_AT_ONCE)
        self._in_vain: Counter[str] = Counter()
        self._of_use: set[str] = set()
        self._under_way: set[asyncio.Task[bytes | None]] = set()
        self._given_up = False
        if self._browser is not None:
            for event in History(self._crawl.store).events(RENDERED):
                url, _, came = event.detail.rpartition(": ")
                self._learn(host(url), gained=came.startswith(_GAINED))
            crawler.signals.connect(self.close, signal=signals.engine_stopped)

    async def render(self, visit: PageVisit) -> None:
        """Set the visit's page to what it is when its scripts have run, if it needs that.

        Raises
        ------
        GivenUpError
            The crawl ends; the URL is queued again.
        WorkerError
            The browser cannot start; the crawl is halted, the URL queued again.
        """
        if self._browser is None or not self._is_needed(visit):
            return
        async with self._few_at_once:
            if self._crawl.exhausted or not self._is_needed(visit):
                return
            self._crawl.count_again(200)
            task = asyncio.ensure_future(self._browser.rendered(visit))
            self._under_way.add(task)
            try:
                body = await task
            except asyncio.CancelledError:
                if not self._given_up:
                    raise
                self._crawl.put_back(visit.number, time.monotonic())
                raise GivenUpError("the crawl ends") from None
            except WorkerError:
                self._crawl.halt(visit.number, time.monotonic())
                raise
            finally:
                self._under_way.discard(task)
        await self._take(visit, body)

    def give_up(self) -> None:
        """Let go of what is in the browser: the crawl has to end."""
        self._given_up = True
        for task in self._under_way:
            task.cancel()

    async def close(self) -> None:
        """End the browser."""
        if self._browser is not None:
            await self._browser.close()

    def _is_needed(self, visit: PageVisit) -> bool:
        view = visit.view
        if view is None or view.kind or visit.again or not view.scripts:
            return False
        if _words(view) >= _FEW or self._given_up:
            return False
        own = host(visit.url)
        return own in self._of_use or self._in_vain[own] < _IN_VAIN

    async def _take(self, visit: PageVisit, body: bytes | None) -> None:
        """Take a page as the browser has it, if that is more than it was."""
        plain, sent = visit.view, visit.download
        assert plain is not None
        gained = False
        if body is not None:
            visit.download = replace(sent, body=body, content_type="text/html", encoding="utf-8")
            await self._parsing.parse(visit)
            gained = visit.error is None and visit.view is not None and _more(visit.view, plain)
        if not gained:
            visit.view, visit.download, visit.error = plain, sent, None
        self._learn(host(visit.url), gained=gained)
        assert visit.view is not None
        told = f"{_GAINED if gained else _SAME}, {_words(plain)} to {_words(visit.view)} words"
        visit.events.append((RENDERED, f"{visit.url}: {told}"))
        self._crawler.stats.inc_value("focuscrawl/rendered")

    def _learn(self, name: str, *, gained: bool) -> None:
        if gained:
            self._of_use.add(name)
        else:
            self._in_vain[name] += 1


def _words(view: PageView) -> int:
    """Return how many words a page has beside its title."""
    if not view.title:
        return len(view.tokens)
    return int((view.token_leaf > 0).sum())


def _more(view: PageView, plain: PageView) -> bool:
    return _words(view) > _words(plain) or len(view.links) > len(plain.links)


_rendering: WeakKeyDictionary[Crawler, Rendering] = WeakKeyDictionary()


def rendering_of(crawler: Crawler) -> Rendering:
    """Return what renders the pages of `crawler`; made before the engine starts."""
    if crawler not in _rendering:
        _rendering[crawler] = Rendering(crawler)
    return _rendering[crawler]
