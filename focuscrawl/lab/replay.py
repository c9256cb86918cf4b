"""A crawl of a recorded web in this process, without Scrapy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from focuscrawl.crawl.visit import Download
from focuscrawl.foundation.urls import resolve
from focuscrawl.page import read_content_type

if TYPE_CHECKING:
    from focuscrawl.crawl import Crawl, Fetch
    from focuscrawl.webs.protocol import Answer

_NOW = 0.0  # a replay has no clock
_WAIT = 0.001  # seconds, for the store or a lesson


def replay(crawl: Crawl) -> None:
    """Crawl until there is a reason to stop, and close the crawl.

    Parameters
    ----------
    crawl : of a web; opened, and not begun
    """
    assert crawl.web is not None
    while True:
        fetch = crawl.next(_NOW)
        if fetch is not None:
            _visit(crawl, fetch, crawl.web.fetch(fetch.url))
        elif crawl.stop_reason is not None:
            crawl.close(crawl.stop_reason)
            return
        else:
            time.sleep(_WAIT)


def _visit(crawl: Crawl, fetch: Fetch, answer: Answer | None) -> None:
    if answer is None:
        fetched = Download(404)
    else:
        media_type, encoding = read_content_type(answer.header("content-type"))
        location = answer.header("location")
        fetched = Download(
            status=answer.status,
            body=answer.body,
            content_type=media_type,
            encoding=encoding,
            location=resolve(fetch.url, [location])[0] if location else None,
            size=len(answer.body),
        )
    crawl.visit(fetch.id, fetched, crawl.parse(fetch.id, fetched), _NOW)
