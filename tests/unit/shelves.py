"""A web in memory and the loop without Scrapy, for tests of the crawl."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl.crawl.loop import fetch_answer, process_answer
from focuscrawl.foundation.urls import normalize
from focuscrawl.testing import KeywordCritic, TinyWeb, new_crawl, step

if TYPE_CHECKING:
    from focuscrawl.crawl import Crawl, Fetch, Visit
    from focuscrawl.critic.protocol import Critic


class Shelf(TinyWeb):
    """A web in memory whose pages are named by paths, see `at`."""

    def page(self, path: str, text: str, *links: str, head: str = "") -> None:
        anchors = " ".join(f'<a href="{link}">link {link}</a>' for link in links)
        self.put(path, f"<html><head>{head}</head><body>{text} {anchors}</body></html>")

    def put(self, url: str, body: str, status: int = 200, **headers: str) -> None:
        if "location" in headers:
            headers["location"] = at(headers["location"])
        super().put(at(url), body, status, **headers)


class WordCritic(KeywordCritic):
    """Relevance 0.9 for pages with the word "jazz", 0.2 for others; two classes."""

    def __init__(self) -> None:
        super().__init__("jazz", classes=("/Music/Jazz", "/Other"))


def at(path: str) -> str:
    """Return the URL of a page of the shelf: ``/x``, or ``host/x``."""
    host, _, rest = path.partition("/")
    url = normalize(f"http://{host or 'a'}.example/{rest}")
    assert url is not None
    return url


def open_crawl(
    folder: Path,
    web: Shelf | None,
    *seeds: str,
    closed: bool = True,
    critic: Critic | None = None,
    **plan: Any,
) -> Crawl:
    """Open a crawl of `web`, new or resumed."""
    found = [at(seed) for seed in seeds]
    return new_crawl(folder, web, found, critic=critic or WordCritic(), closed=closed, **plan)


def given_out(crawl: Crawl, now: float = 0.0) -> Fetch:
    """Return the next fetch, which there has to be."""
    fetch = crawl.next(now)
    assert fetch is not None
    return fetch


def exclude(crawl: Crawl, fetch: Fetch, why: str) -> None:
    """Leave a URL that was given out unfetched, as for robots.txt."""
    visit = crawl.start_failed_visit(fetch.id, why)
    visit.excluded = why
    crawl.record(visit, 0.0)


def answer(crawl: Crawl, fetch: Fetch) -> Visit:
    """Give the crawl what its web has for `fetch`."""
    return process_answer(crawl, fetch, fetch_answer(crawl, fetch))


def run(crawl: Crawl, fetches: int = 1000) -> list[Visit]:
    """Crawl until nothing comes any more, or so many fetches were made."""
    visits: list[Visit] = []
    while len(visits) < fetches and (found := step(crawl)) is not None:
        visits.append(found)
    return visits


class Crawled(NamedTuple):
    """A crawl that is over, and what it has fetched in this run."""

    crawl: Crawl
    visits: list[Visit]


def crawled(
    folder: Path, web: Shelf | None, *seeds: str, fetches: int = 10_000, **plan: Any
) -> Crawled:
    """Open a crawl as `open_crawl` does, run it and close it."""
    crawl = open_crawl(folder, web, *seeds, **plan)
    visits = run(crawl, fetches)
    crawl.close(crawl.stop_reason or "interrupted")
    return Crawled(crawl, visits)


def urls(visits: list[Visit]) -> list[str]:
    return [visit.url for visit in visits]


def word(number: int) -> str:
    """Return a word for a number; pages that differ only in numbers are near-duplicates."""
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


def states(crawl: Crawl) -> dict[str, str]:
    """Return the view `frontier` of a closed crawl: states by URL."""
    found = dict(map(tuple, crawl.store.rows("SELECT url, state FROM frontier")))
    crawl.store.close()
    return found
