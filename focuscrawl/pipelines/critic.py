"""The critic: judges every page that comes [F99 section 3.1, A02 section 2.1]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem

from focuscrawl.crawl import PageVisit
from focuscrawl.engine.component import Component
from focuscrawl.engine.page_parsing import parsing_of
from focuscrawl.engine.rendering import rendering_of
from focuscrawl.engine.visits import halting
from focuscrawl.errors import GivenUpError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class CriticPipeline(Component):
    """Parses what came and sets `relevance`, `topic`, `probabilities` and `view` of the item.

    Redirects, errors, duplicates and what is no HTML have relevance 0. Pipelines after this one
    may set another relevance: links are scored, limits earned and lessons learned by that.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._parsing = parsing_of(crawler)
        self._rendering = rendering_of(crawler)

    async def process_item(self, item: Any) -> Any:
        """Judge a fetch; items of other kinds pass."""
        if isinstance(item, PageVisit) and item.excluded is None:
            try:
                await self._parsing.parse(item)
                await self._rendering.render(item)
            except GivenUpError as error:
                raise DropItem(str(error), log_level="DEBUG") from None
            with halting(self._crawl, item.number):
                self._crawl.judge(item)
        return item
