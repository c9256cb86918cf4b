"""Item pipelines of a user's, between those of the project."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from scrapy import Request
from scrapy.exceptions import DropItem
from scrapy.pipelines.files import FilesPipeline

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from focuscrawl.crawl import PageVisit
    from focuscrawl.engine.instance_feed import Instance


class SecondOpinion:
    """Holds all that the critic likes to be off the topic, and the rest to be on it."""

    async def process_item(self, item: PageVisit) -> PageVisit:
        await asyncio.sleep(0)
        if item.view is not None and item.duplicate_id is None:
            item.relevance = 1.0 - item.relevance
        return item


class Dropper:
    """Drops every third page that was judged."""

    def process_item(self, item: PageVisit) -> PageVisit:
        if item.url_id % 3 == 1:
            raise DropItem("every third")
        return item


class Failing:
    """Fails on every fifth page."""

    def process_item(self, item: PageVisit) -> PageVisit:
        if item.url_id % 5 == 4:
            raise ValueError("every fifth")
        return item


class Forgetful:
    """Has no ``return item`` for every fifth page."""

    def process_item(self, item: PageVisit) -> PageVisit | None:
        return None if item.url_id % 5 == 4 else item


class Unsettled:
    """Has an opinion that is no relevance."""

    def process_item(self, item: PageVisit) -> PageVisit:
        item.relevance = 7.0
        return item


class Headlines:
    """Puts the first heading and the canonical URL in the place of the title."""

    def process_item(self, item: PageVisit) -> PageVisit:
        if item.view is not None:
            page = item.selector
            item.title = f"{page.css('h1::text').get()} {page.xpath('//link/@href').getall()}"
        return item


class Corrupting:
    """Takes the body of every fifth page away, so that it cannot be parsed."""

    def process_item(self, item: PageVisit) -> PageVisit:
        if item.url_id % 5 == 4:
            item.download = replace(item.download, body=cast("bytes", None))
        return item


class Slow:
    """Takes its time, a different one for each page."""

    async def process_item(self, item: PageVisit) -> PageVisit:
        await asyncio.sleep(0.002 * (item.url_id % 4))
        return item


class Waiting:
    """Lets so many pages pass as ``TEST_PAGES`` says, and no more until there is ``TEST_GO_ON``.

    A crawl is quick: whoever wants to see it at some page must not be too late on a busy machine.
    """

    def __init__(self, pages: int, go_on: Path) -> None:
        self._left = pages
        self._go_on = go_on

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.settings.getint("TEST_PAGES"), Path(crawler.settings["TEST_GO_ON"]))

    async def process_item(self, item: PageVisit) -> PageVisit:
        while not self._left and not self._go_on.exists():
            await asyncio.sleep(0.01)
        self._left = max(0, self._left - 1)
        return item


class Pictures(FilesPipeline):
    """Fetches what ``TEST_PICTURES`` names with every page."""

    def get_media_requests(self, item: PageVisit, info: Any) -> list[Request]:
        return [Request(url) for url in self.crawler.settings.getlist("TEST_PICTURES")]

    def item_completed(self, results: Any, item: PageVisit, info: Any) -> PageVisit:
        return item


def choke(instance: Instance) -> None:
    """Fail, as a user's callable might."""
    raise ValueError(f"cannot take {instance.target}")
