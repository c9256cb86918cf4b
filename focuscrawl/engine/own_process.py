"""The set-up of a process that ``scrapy crawl focused`` has to itself: memory, threads, pauses.

Nothing here is for a process that belongs to others: they crawl with the add-on, or drive a
`focuscrawl.crawl.Crawl` themselves.
"""

from __future__ import annotations

import ctypes
import gc
from typing import TYPE_CHECKING

from scrapy import signals
from threadpoolctl import threadpool_limits

from focuscrawl.engine.private import pause_briefly

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

# of mallopt(3)
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_LARGE = 8 << 20  # bytes
_LEFT = 64 << 20
_CONTAINERS = 10_000


def set_up_process(crawler: Crawler) -> None:
    """Set up the process for the one crawl of `crawler`, so that it can last for weeks.

    numpy has to be loaded by now: sharing small vectors out among threads of BLAS takes longer
    than the work on them, and it is loaded libraries that are told so. (scipy has a BLAS of its
    own, which is for training; no crawl needs it.)
    """
    pause_briefly()
    _return_large_arrays()
    threadpool_limits(1, user_api="blas")
    crawler.signals.connect(_freeze, signal=signals.spider_opened, weak=False)


def _return_large_arrays() -> None:
    """Have arrays of 8 MB and more given back to the system when they are freed.

    Columns that grow are copied to larger ones again and again. glibc keeps what was freed, up to
    32 MB a piece, and fills the holes with small things: after some thousand pages half of a
    crawl's growth is such holes. Smaller arrays it should keep: a lesson makes dozens of a few
    megabytes, and the system clears each page of memory that it gives anew. So that they are
    used again, whichever thread freed them, there is one heap, and up to 64 MB stay at its end.
    Where there is no such C library nothing happens.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
        mallopt(_M_TRIM_THRESHOLD, _LEFT)
        mallopt(_M_ARENA_MAX, 1)


def _freeze() -> None:
    """Take what is loaded now out of the way of full collections, which hold the event loop.

    And look for garbage after 10,000 new containers, not after 700: one page has thousands of
    rows and texts, which go without being looked for.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_CONTAINERS, *gc.get_threshold()[1:])
