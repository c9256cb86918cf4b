"""A web in memory and the loop without Scrapy, for tests of the crawl."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from focuscrawl.crawl import Crawl, CrawlFolder, CrawlPlan
from focuscrawl.crawl.assembly import parts_of
from focuscrawl.crawl.restore import restore
from focuscrawl.critic.protocol import Judgement
from focuscrawl.foundation.urls import normalize
from focuscrawl.frontier import Frontier
from focuscrawl.lab.replay import visit
from focuscrawl.strategies import StrategyContext, make_strategy
from focuscrawl.webs.protocol import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from focuscrawl.crawl import Fetch, Visit
    from focuscrawl.page import PageView


class Shelf:
    """A web (`webs.protocol.Web`) of pages in memory."""

    name = "shelf"
    fingerprint = "5e1f"

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}

    def page(self, path: str, text: str, *links: str, head: str = "") -> None:
        anchors = " ".join(f'<a href="{link}">link {link}</a>' for link in links)
        self.put(path, f"<html><head>{head}</head><body>{text} {anchors}</body></html>")

    def put(self, path: str, body: str, status: int = 200, **headers: str) -> None:
        given = {"content_type": "text/html", **headers}
        if "location" in given:
            given["location"] = at(given["location"])
        pairs = [(name.replace("_", "-").title(), value) for name, value in given.items()]
        self.answers[at(path)] = Answer(at(path), status, pairs, body.encode())

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        return [url if url in self.answers else None for url in urls]

    def fetch(self, url: str) -> Answer | None:
        return self.answers.get(url)

    def urls(self) -> Iterator[str]:
        return iter(self.answers)


class WordCritic:
    """Relevance 0.9 for pages with the word "jazz", 0.2 for others; two classes."""

    classes: tuple[str, ...] = ("/Music/Jazz", "/Other")
    marked = np.array([True, False])
    examples: tuple[str, ...] = ()
    fingerprint = "c417"

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        relevance = np.array([0.9 if "jazz" in page.tokens else 0.2 for page in pages])
        return Judgement(relevance, np.stack([relevance, 1 - relevance], axis=1))


def at(path: str) -> str:
    """Return the URL of a page of the shelf: ``/x``, or ``host/x``."""
    host, _, rest = path.partition("/")
    url = normalize(f"http://{host or 'a'}.example/{rest}")
    assert url is not None
    return url


def open_crawl(
    folder: Path, web: Shelf | None, *seeds: str, closed: bool = True, **plan: object
) -> Crawl:
    """Open a crawl of `web`, new or resumed."""
    plan = {"strategy": "best-first", **plan}
    given = CrawlPlan(topic="/Music/Jazz", closed=closed, **plan)  # type: ignore[arg-type]
    critic = WordCritic()
    kept = CrawlFolder(folder)
    crawl = Crawl(
        critic=critic,
        strategy=make_strategy(
            given.strategy, StrategyContext(critic, given.random_state, web), given.options
        ),
        frontier=Frontier(given.per_host, given.delay),
        store=kept.open_store({"strategy": given.strategy}, {}),
        folder=kept,
        web=web,
        plan=given,
    )
    crawl.parts = parts_of(crawl)
    restore(crawl)
    crawl.start([at(seed) for seed in seeds])
    return crawl


def answer(crawl: Crawl, fetch: Fetch) -> Visit:
    """Give the crawl what its web has for `fetch`."""
    assert crawl.web is not None
    return visit(crawl, fetch, crawl.web.fetch(fetch.url))


def run(crawl: Crawl, fetches: int = 1000) -> list[Visit]:
    """Crawl until nothing comes any more, or so many fetches were made."""
    visits: list[Visit] = []
    while len(visits) < fetches:
        fetch = crawl.next(0.0)
        if fetch is not None:
            visits.append(answer(crawl, fetch))
        elif not crawl.pausing:  # a lesson is waited for
            break
        else:
            time.sleep(0.001)
    return visits


def urls(visits: list[Visit]) -> list[str]:
    return [visit.url for visit in visits]


def states(crawl: Crawl) -> dict[str, str]:
    """Return the view `frontier` of a closed crawl: states by URL."""
    rows = crawl.store.rows(sa.text("SELECT url, state FROM frontier"))
    found = {row.url: row.state for row in rows}
    crawl.store.close()
    return found
