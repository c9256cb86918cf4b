"""The distiller in the loop: what top hubs link to comes first, the same way every time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from longer import long

from focuscrawl.crawl import Crawl, CrawlConfig, Download, Fetch, open_crawl
from focuscrawl.crawl.distilling import Distilling
from focuscrawl.crawl.visit import PageVisit
from focuscrawl.foundation.urls import normalize
from focuscrawl.page import read_content_type
from focuscrawl.store.history import History
from focuscrawl.store.schema import LinkRow
from focuscrawl.webs.synthetic import SyntheticWeb

from .shelves import Shelf
from .shelves import open_crawl as open_shelf

TOPIC = "/Arts/Music/Jazz"
EVERY = 20
BUDGET = 130


def crawl_on(
    folder: Path,
    budget: int,
    strategy: str = "best-first",
    grown: Callable[[str], bytes] | None = None,
    **plan: Any,
) -> Crawl:
    """Open a crawl of the synthetic web, new or resumed, and run it to its budget.

    Parameters
    ----------
    grown : what a page has gained at its end when it is fetched again
    """
    seeds = ",".join(SyntheticWeb(0.1).seeds(TOPIC))
    given = {"distill": EVERY, "seeds": seeds, **plan}
    crawl = open_crawl(
        CrawlConfig(
            topic=TOPIC,
            web="demo:0.1",
            crawl_dir=str(folder),
            budget=budget,
            strategy=strategy,
            **given,
        )
    )
    web = crawl.web
    assert web is not None
    while crawl.stop_reason is None:
        fetch = crawl.next(0.0)
        if fetch is None:
            assert crawl.is_waiting
            time.sleep(0.001)
            continue
        found = web.fetch(fetch.url)
        assert found is not None
        headers = {name.lower(): value for name, value in found.headers}
        media_type, encoding = read_content_type(headers.get("content-type"))
        fetched = Download(
            status=found.status,
            body=found.body,
            content_type=media_type,
            encoding=encoding,
            location=normalize(headers.get("location", "")),
        )
        if fetch.is_refetch and grown is not None:
            fetched = replace(fetched, body=fetched.body + grown(fetch.url))
        visit = crawl.start_visit(fetch.id, fetched)
        crawl.parse(visit)
        crawl.visit(visit, 0.0)
    return crawl


def kept(folder: Path, *extra: str) -> list[list[tuple[Any, ...]]]:
    """What the store holds of a crawl, times left out."""
    queries = [
        "SELECT seq, url, relevance, score, referrer FROM pages ORDER BY seq",
        "SELECT * FROM links ORDER BY source, dom_position, target, anchor",
        # the last score of what was excluded is no part of the crawl's way
        "SELECT url, CASE state WHEN 'queued' THEN score END, state FROM frontier ORDER BY url",
        *extra,
    ]
    with closing(sqlite3.connect(folder / "crawl.db")) as store:
        return [store.execute(query).fetchall() for query in queries]


EVENTS = "SELECT seq, detail FROM events WHERE kind = 'distilled' ORDER BY id"


@pytest.mark.parametrize(
    "strategy", ["apprentice", *long("best-first", "breadth-first", "hard-focus")]
)
def test_resumes_exactly(tmp_path: Path, strategy: str) -> None:
    crawl_on(tmp_path / "whole", BUDGET, strategy).close("budget")
    whole = kept(tmp_path / "whole", EVENTS)
    assert [seq for seq, _ in whole[-1]] == [n + 5 for n in range(EVERY, BUDGET, EVERY)]
    # when it is due; while it is under way; just before and after it has its effect
    for budget in (EVERY, EVERY + 3, 3 * EVERY + 5, 4 * EVERY + 6, BUDGET):
        crawl_on(tmp_path / "parts", budget, strategy).close("budget")
    assert kept(tmp_path / "parts", EVENTS) == whole


def test_what_is_raised_is_fetched_at_once(tmp_path: Path) -> None:
    crawl_on(tmp_path / "on", BUDGET).close("budget")
    crawl_on(tmp_path / "off", BUDGET, distill=0).close("budget")
    pages, links, _, events = kept(tmp_path / "on", EVENTS)
    without = kept(tmp_path / "off", EVENTS)
    first = EVERY + 5
    assert pages[:first] == without[0][:first]
    assert without[-1] == []
    assert "4 of" in events[0][1]
    raised = pages[first : first + 4]
    for _, url, _, score, referrer in raised:
        assert score is None
        assert referrer is not None
        linking = {source for source, target, *_ in links if target == url}
        assert linking & {page[1] for page in pages[:EVERY]}


class Loop:
    """A crawl's part of it: pages 0 to 2 were fetched, 3 to 5 wait; hosts all differ."""

    def __init__(self, folder: Path, *, replay: bool) -> None:
        self.crawl = open_shelf(folder, Shelf() if replay else None, distill=3)
        self.frontier, self.urls = self.crawl.frontier, self.crawl.urls
        for i in range(6):
            self.urls.add(f"http://host{i}.example/", 1, None)
        for i in (3, 4, 5):
            self.crawl.queue(i, 0.5)
        distilling = self.crawl.part(Distilling)
        assert distilling is not None
        self.distilling = distilling

    def visited(self, url: int, *targets: int) -> None:
        fetch = Fetch(url, self.urls[url], self.urls.host_name(url), 1, 0.5, None)
        visit = PageVisit(fetch, 0.5, Download(200))
        visit.relevance = 0.9
        visit.link_rows = [LinkRow(i, url, v, "", 0, 0.5, 0) for i, v in enumerate(targets)]
        self.crawl.count(url + 1, visit.relevance, visit.status)
        self.distilling.on_recorded(visit)

    def adopt(self, fetched: int) -> list[tuple[int, str]]:
        """Return the events when so many pages were fetched."""
        self.crawl.fetched = fetched
        self.distilling.poll(0.0)
        while self.distilling.wait(0.0) is not None:
            time.sleep(0.001)
            self.distilling.poll(0.0)
        self.crawl.flush()
        told = History(self.crawl.store).events("distilled")
        return [(event.seq, event.detail) for event in told]


@pytest.fixture
def loop(tmp_path: Path, replay: bool) -> Iterator[Loop]:
    made = Loop(tmp_path, replay=replay)
    for url, targets in enumerate([(1, 2, 4), (2, 4), (5,)]):
        made.visited(url, *targets)
    yield made
    made.crawl.close("over")


@pytest.mark.parametrize("replay", [True])
def test_the_best_target_of_hubs_is_raised_and_stays_so(loop: Loop) -> None:
    sorted_before = loop.frontier.sort_queues(np.array([4, 5]), np.array([0.1, 0.7]))
    assert loop.adopt(3) == []
    assert loop.adopt(4) == []
    ((seq, detail),) = loop.adopt(5)
    assert seq == 5
    assert detail.startswith("1 of 1 unfetched targets")
    assert loop.urls.score(4) is None
    loop.frontier.replace_queues(sorted_before)  # a lesson that knows nothing of it
    loop.adopt(6)
    assert [loop.frontier.pop(0.0) for _ in range(3)] == [4, 5, 3]


@pytest.mark.parametrize("replay", [True])
def test_what_is_under_way_is_left_alone(loop: Loop) -> None:
    sorted_before = loop.frontier.sort_queues(np.array([4]), np.array([0.1]))
    loop.adopt(5)
    assert loop.frontier.pop(0.0) == 4
    loop.frontier.replace_queues(sorted_before)
    loop.adopt(6)
    assert {loop.frontier.pop(0.0) for _ in range(2)} == {3, 5}


@pytest.mark.parametrize("replay", [False])
def test_a_live_crawl_waits_for_nothing(loop: Loop) -> None:
    deadline = time.monotonic() + 600
    while not loop.adopt(3):
        assert loop.distilling.wait(0.0) is None
        assert time.monotonic() < deadline
    assert loop.frontier.pop(0.0) == 4


def test_off_there_is_no_such_part(tmp_path: Path) -> None:
    crawl = open_shelf(tmp_path, Shelf())
    assert crawl.part(Distilling) is None
    crawl.close("over")
