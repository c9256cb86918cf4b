"""What Scrapy's engine has no public way to be asked or told."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def wake(crawler: Crawler) -> None:
    """Have the engine of `crawler` look for requests that may be made, not at its heartbeat."""
    slot = crawler.engine._slot
    if slot is not None:
        slot.nextcall.schedule()


def is_closing(crawler: Crawler) -> bool:
    """Tell whether the spider only waits for what is under way."""
    slot = crawler.engine._slot  # the signal `spider_closed` comes when nothing is
    return slot is not None and slot.closing is not None


def nothing_under_way(crawler: Crawler) -> bool:
    """Tell whether no request is being downloaded, nor its answer processed."""
    slot = crawler.engine._slot
    return slot is not None and not slot.inprogress
