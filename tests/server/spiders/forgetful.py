"""A spider that loses some of its fetches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from focuscrawl.spiders.focused import FocusedSpider

if TYPE_CHECKING:
    from scrapy.http import Response

    from focuscrawl.crawl import PageVisit


class Forgetful(FocusedSpider):
    """Does not yield the first two fetches."""

    name = "forgetful"
    forgets = 2

    def parse(self, response: Response) -> Iterator[PageVisit]:
        for visit in super().parse(response):
            if self.forgets:
                self.forgets -= 1
            else:
                yield visit
