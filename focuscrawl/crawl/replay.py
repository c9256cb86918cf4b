"""The loop over a recorded web in this process, without Scrapy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from focuscrawl.crawl.visit import TOO_HARD, Download
from focuscrawl.foundation.urls import resolve
from focuscrawl.page import TooMuchWorkError, read_content_type

if TYPE_CHECKING:
    from focuscrawl.crawl import Crawl, Fetch, Visit
    from focuscrawl.webs.protocol import Answer

NOW = 0.0  # a replay has no clock
_WAIT = 0.001  # seconds, for the store or a lesson


def replay(crawl: Crawl) -> None:
    """Crawl until there is a reason to stop, and close the crawl.

    Parameters
    ----------
    crawl : of a web; opened, and not begun
    """
    with threadpool_limits(1, user_api="blas"):  # as in the process of a crawl
        while True:
            fetch = crawl.next(NOW)
            if fetch is not None:
                visit(crawl, fetch, answer_of(crawl, fetch))
            elif crawl.stop_reason is not None:
                crawl.close(crawl.stop_reason)
                return
            else:
                time.sleep(_WAIT)


def answer_of(crawl: Crawl, fetch: Fetch) -> Answer | None:
    """Return what the crawl's web has for a fetch; None if it has nothing."""
    assert crawl.web is not None
    return crawl.web.fetch(fetch.url)


def visit(crawl: Crawl, fetch: Fetch, answer: Answer | None) -> Visit:
    """Give the crawl an answer for what it asked for; None: there is no such page."""
    if answer is not None and answer.too_large:
        visit = crawl.failed(fetch.id, "too large: the recorded body")
    elif answer is not None and answer.failure:
        visit = crawl.failed(fetch.id, f"not in the archive: {answer.failure}")
    else:
        download = Download(404) if answer is None else _download(fetch, answer)
        visit = crawl.arrived(fetch.id, download)
        try:
            crawl.parse(visit)
        except TooMuchWorkError:
            visit.error = TOO_HARD
    return crawl.visit(visit, NOW)


def _download(fetch: Fetch, answer: Answer) -> Download:
    media_type, encoding = read_content_type(answer.header("content-type"))
    location = answer.header("location")
    return Download(
        status=answer.status,
        body=answer.body,
        content_type=media_type,
        encoding=encoding,
        location=resolve(fetch.url, [location])[0] if location else None,
        links=tuple(value for name, value in answer.headers if name.lower() == "link"),
    )
