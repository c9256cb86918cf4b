"""Sets up memory, threads and garbage collection of the process of ``scrapy crawl focused``.

Programs that use the add-on or `focuscrawl.crawl.Crawl` do not use this module.
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
_MMAP_THRESHOLD = 8 << 20  # bytes
_TRIM_THRESHOLD = 64 << 20
_GC_THRESHOLD = 10_000


def set_up_process(crawler: Crawler) -> None:
    """Set up the process for one crawl that can run for weeks.

    The caller must have imported numpy, because only loaded libraries can be limited to one
    thread. For small vectors, one thread of the BLAS library is faster than several.
    """
    shorten_callback_delay()
    _return_large_arrays()
    threadpool_limits(1, user_api="blas")
    crawler.signals.connect(_tune_garbage_collector, signal=signals.spider_opened, weak=False)


def _return_large_arrays() -> None:
    """Make glibc return arrays of 8 MB and more to the system when they are freed.

    Growing columns are copied to larger arrays repeatedly. By default glibc keeps freed blocks of
    up to 32 MB and fills the holes with small objects. After some thousand pages, such holes are
    half of a crawl's growth. Smaller arrays are kept, because training creates dozens of them and
    the system clears each new page of memory. All threads share one heap, which keeps 64 MB.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD)
        mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD)
        mallopt(_M_ARENA_MAX, 1)


def _tune_garbage_collector() -> None:
    """Exempt all present objects from garbage collection, which blocks the event loop.

    Also collect after 10,000 new containers instead of 700, because one page creates thousands of
    rows and texts that reference counting frees.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD, *gc.get_threshold()[1:])
