"""Item pipelines of a user's, between those of the project."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy.exceptions import DropItem

if TYPE_CHECKING:
    from focuscrawl.crawl import PageVisit
    from focuscrawl.engine.instance_feed import Instance

SEEN: list[Instance] = []


class SecondOpinion:
    """Holds all that the critic likes to be off the topic, and the rest to be on it."""

    async def process_item(self, item: PageVisit) -> PageVisit:
        await asyncio.sleep(0)
        if item.view is not None and item.twin is None:
            item.relevance = 1.0 - item.relevance
        return item


class Dropper:
    """Drops every third page that was judged."""

    def process_item(self, item: PageVisit) -> PageVisit:
        if item.number % 3 == 1:
            raise DropItem("every third")
        return item


class Failing:
    """Fails on every fifth page."""

    def process_item(self, item: PageVisit) -> PageVisit:
        if item.number % 5 == 4:
            raise ValueError("every fifth")
        return item


class Slow:
    """Takes its time, a different one for each page."""

    async def process_item(self, item: PageVisit) -> PageVisit:
        await asyncio.sleep(0.002 * (item.number % 4))
        return item


def see(instance: Instance) -> None:
    """Print an instance, as a user's callable might."""
    print("INSTANCE", instance.source, instance.target, instance.relevance_target)  # noqa: T201
