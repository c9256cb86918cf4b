"""The strategy: scores the links of a judged page, and takes it for training (METHODS 4, 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from focuscrawl.crawl import PageVisit
from focuscrawl.engine.component import Component
from focuscrawl.engine.expansion import expand
from focuscrawl.engine.instance_feed import InstanceFeed
from focuscrawl.engine.visits import halting, turns_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class LinkPipeline(Component):
    """Has every link of the page scored, queues where they lead, and emits (u,v) instances.

    The page is v for the links that led to it: with R(v) known, each of them is an instance to
    learn from. The strategy is given them; `FOCUSCRAWL_INSTANCES` names a feed or a callable
    that is, too. One page at a time is between here and `RecordPipeline`: the strategy sees
    pages in the order in which they are recorded.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._turns = turns_of(crawler)
        self._instances = InstanceFeed.of(crawler)

    async def process_item(self, item: Any) -> Any:
        """Expand a fetch; items of other kinds pass."""
        if isinstance(item, PageVisit) and item.excluded is None:
            await self._turns.begin(item)
            try:
                with halting(self._crawl, item.number):
                    await expand(self._crawl, item)
                    if self._instances is not None:
                        self._instances.add(item)
            except Exception:
                self._turns.end(item)
                raise
        return item
