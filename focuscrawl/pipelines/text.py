"""Text: the main text of a recorded page, and what it says of itself, in the item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from focuscrawl.crawl import PageVisit
from focuscrawl.engine.component import Component
from focuscrawl.engine.page_texts import texts_of
from focuscrawl.engine.settings_table import TEXT_MARKDOWN
from focuscrawl.engine.text_visit import TextVisit

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class TextPipeline(Component):
    """Makes every fetch a `TextVisit`; there with ``FOCUSCRAWL_TEXT``, after what records.

    The crawl goes on meanwhile.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._texts = texts_of(crawler)
        self._markdown = TEXT_MARKDOWN.of(crawler.settings)

    async def process_item(self, item: Any) -> Any:
        """Take the text of a fetch; items of other kinds pass."""
        if not isinstance(item, PageVisit):
            return item
        found = await self._texts.take(item) if self._texts.wants(item) else None
        return TextVisit.of(item, found, markdown=self._markdown)
