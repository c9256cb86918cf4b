"""Links are scored and queued without holding the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

if TYPE_CHECKING:
    from focuscrawl.crawl import Crawl, PageVisit
    from focuscrawl.page import PageView

# The apprentice takes a millisecond for 40 links, or for 2,500 words.
_MANY_LINKS = 500
_WORDS_A_LINK = 60


async def expand(crawl: Crawl, visit: PageVisit) -> None:
    """Do what `Crawl.expand` does; whoever calls it has the turn (`focuscrawl.engine.visits`).

    Of a long page of the live Web the links are scored in a thread, and queued some at a time. A
    replay has no connections that wait, and its web is not to be read in two threads.
    """
    if crawl.web is not None or visit.view is None or not _is_long(visit.view):
        crawl.expand(visit)
        return
    await _let_others_in()
    page = crawl.begin_expansion(visit)
    if page is None:
        return
    in_thread = deferToThread(crawl.score, visit, page)
    scored = await maybe_deferred_to_future(in_thread)
    for _ in crawl.end_expansion(visit, page, scored):
        await _let_others_in()


def _is_long(view: PageView) -> bool:
    return len(view.links) + len(view.tokens) // _WORDS_A_LINK > _MANY_LINKS


async def _let_others_in() -> None:
    """Go on when the event loop has looked at its connections."""
    later: Deferred[None] = Deferred()
    call_later(0, later.callback, None)
    await maybe_deferred_to_future(later)
