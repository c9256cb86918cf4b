"""Links are scored where they do not hold the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.threads import deferToThread

from focuscrawl.crawl import score_links

if TYPE_CHECKING:
    from focuscrawl.crawl import Crawl, PageVisit
    from focuscrawl.strategies import JudgedPage

# The apprentice takes a millisecond for 40 links, or for 2,500 words.
_MANY_LINKS = 500
_WORDS_A_LINK = 60


async def expand(crawl: Crawl, visit: PageVisit) -> None:
    """Do what `Crawl.expand` does; whoever calls it has the turn (`focuscrawl.engine.visits`).

    Of a long page of the live Web the links are scored in a thread. A replay has no connections
    that wait, and its web is not to be read in two threads.
    """
    page = crawl.begin_expansion(visit)
    if page is None:
        return
    if crawl.web is None and _is_long(page):
        in_thread = deferToThread(score_links, crawl.strategy, page)
        scored = await maybe_deferred_to_future(in_thread)
    else:
        scored = score_links(crawl.strategy, page)
    crawl.end_expansion(visit, page, scored)


def _is_long(page: JudgedPage) -> bool:
    return len(page.links) + len(page.view.tokens) // _WORDS_A_LINK > _MANY_LINKS
