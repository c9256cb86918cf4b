"""When the pages of a site map were changed last, as the site map says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scrapy.spiders import SitemapSpider

from focuscrawl.foundation.urls import normalize
from focuscrawl.foundation.w3c_dates import changed_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scrapy import Request, Spider

MOST = 50_000  #: dates that are kept; a site map has no more URLs


class SitemapDates:
    """Remembers the ``lastmod`` of what a `SitemapSpider` reads, which its requests do not have.

    How new a page is says nothing of its relevance: it decides between equal scores only.

    Parameters
    ----------
    spider : any; one that reads site maps is listened to at its ``sitemap_filter``, which may be
        its own: what that leaves out is not remembered
    """

    def __init__(self, spider: Spider | None) -> None:
        self._at: dict[str, float] = {}
        if isinstance(spider, SitemapSpider):
            filter_entries = spider.sitemap_filter

            def listen(entries: Any) -> Iterator[dict[str, Any]]:
                for entry in filter_entries(entries):
                    self._note(entry.get("loc"), entry.get("lastmod"))
                    yield entry

            spider.sitemap_filter = listen  # type: ignore[method-assign]

    def newest_first(self, requests: Iterable[Request]) -> list[Request]:
        """Return requests, the latest date first; those without one last, as they came."""
        return sorted(requests, key=lambda request: -self._take(request.url))

    def _note(self, loc: Any, lastmod: Any) -> None:
        url, at = normalize(str(loc)), changed_at(str(lastmod))
        if url is None or at is None:
            return
        self._at[url] = at
        if len(self._at) > MOST:  # the spider does not ask for all of them
            del self._at[next(iter(self._at))]

    def _take(self, url: str) -> float:
        return self._at.pop(normalize(url) or url, -math.inf)
