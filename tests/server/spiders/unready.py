"""A spider that does not get beyond its start."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from focuscrawl.spiders.focused import FocusedSpider


class Unready(FocusedSpider):
    """Raises an error before its first request."""

    name = "unready"

    async def start(self) -> AsyncIterator[Any]:
        if self.name:
            raise OSError("the list of start pages is not there")
        yield
