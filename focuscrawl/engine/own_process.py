"""The set-up of a process that ``scrapy crawl focused`` has to itself: memory, threads, pauses.

Not for processes of other programs, which use the add-on or a `focuscrawl.crawl.Crawl`.
"""

from __future__ import annotations

import ctypes
import gc
from typing import TYPE_CHECKING

from scrapy import signals
from threadpoolctl import threadpool_limits

from focuscrawl.engine.private import shorten_callback_delay

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

# of mallopt(3)
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_LARGE = 8 << 20  # bytes
_LEFT = 64 << 20
_CONTAINERS = 10_000


def set_up_process(crawler: Crawler) -> None:
    """Set up the process for the one crawl of `crawler`, so that it can last for weeks.

    numpy has to be loaded by now: only loaded libraries can be limited to one thread, and to
    share small vectors among threads of BLAS takes longer than the work on them.
    """
    shorten_callback_delay()
    _return_large_arrays()
    threadpool_limits(1, user_api="blas")
    crawler.signals.connect(_freeze, signal=signals.spider_opened, weak=False)


def _return_large_arrays() -> None:
    """Return arrays of 8 MB and more to the system when they are freed, if the C library is glibc.

    Columns that grow are copied to larger ones again and again. glibc keeps what was freed, up to
    32 MB a piece, and fills the holes with small objects: after some thousand pages half of a
    crawl's growth is such holes. Smaller arrays it should keep: a lesson creates dozens of a few
    megabytes, and the system clears each new page of memory. One heap, of which up to 64 MB stay,
    lets all threads use them again.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
        mallopt(_M_TRIM_THRESHOLD, _LEFT)
        mallopt(_M_ARENA_MAX, 1)


def _freeze() -> None:
    """Exempt all present objects from full collections, which block the event loop.

    And collect garbage after 10,000 new containers, not after 700: one page has thousands of rows
    and texts, which need no collection.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_CONTAINERS, *gc.get_threshold()[1:])
