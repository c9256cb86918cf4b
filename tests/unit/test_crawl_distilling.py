"""The distiller in the loop: what top hubs link to comes first, the same way every time."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from focuscrawl.crawl import Crawl, CrawlPlan, Download, open_crawl
from focuscrawl.crawl.finding import Finding
from focuscrawl.crawl.parts.distilling import Distilling
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.foundation.urls import normalize
from focuscrawl.frontier import Frontier
from focuscrawl.page import read_content_type
from focuscrawl.store.records import LinkRow
from focuscrawl.store.schema import QUEUED
from focuscrawl.webs.synthetic import SyntheticWeb

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
        CrawlPlan(
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
            assert crawl.pausing
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
        if fetch.again and grown is not None:
            fetched = replace(fetched, body=fetched.body + grown(fetch.url))
        crawl.visit(fetch.id, fetched, crawl.parse(fetch.id, fetched), 0.0)
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


@pytest.mark.parametrize("strategy", ["best-first", "breadth-first", "hard-focus", "apprentice"])
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

    def __init__(self, *, replay: bool, every: int = 3) -> None:
        self.urls, self.frontier = UrlTable(), Frontier()
        for i in range(6):
            self.urls.add(f"http://host{i}.example/", 1, None)
        for i in (3, 4, 5):
            self.urls.change(i, QUEUED, 0.5)
            self.frontier.push(i, self.urls.host(i), 0.5)
        self.distilling = Distilling(every, "auto", replay=replay)

    def visited(self, url: int, *targets: int) -> None:
        rows = [LinkRow(i, url, v, "", 0, 0.5, 0) for i, v in enumerate(targets)]
        self.distilling.visited(self.urls, url, Finding(relevance=0.9, link_rows=rows))

    def adopt(self, fetched: int) -> list[tuple[int, str, str]]:
        while self.distilling.waited_for(fetched) or not fetched:
            events = self.distilling.adopt(fetched, self.urls, self.frontier)
            if events:
                return events
            time.sleep(0.001)
        return self.distilling.adopt(fetched, self.urls, self.frontier)


def test_the_best_target_of_hubs_is_raised_and_stays_so() -> None:
    loop = Loop(replay=True)
    for url, targets in enumerate([(1, 2, 4), (2, 4), (5,)]):
        loop.visited(url, *targets)
    sorted_before = loop.frontier.arrange(np.array([4, 5]), np.array([0.1, 0.7]))
    assert loop.adopt(3) == []
    assert not loop.distilling.waited_for(4)
    ((seq, kind, detail),) = loop.adopt(5)
    assert (seq, kind) == (5, "distilled")
    assert detail.startswith("1 of 1 unfetched targets")
    assert loop.urls.score(4) is None
    loop.frontier.adopt(sorted_before)  # a lesson that knows nothing of it
    loop.distilling.adopt(6, loop.urls, loop.frontier)
    assert [loop.frontier.pop(0.0) for _ in range(3)] == [4, 5, 3]
    loop.distilling.close()


def test_what_is_under_way_is_left_alone() -> None:
    loop = Loop(replay=True)
    for url, targets in enumerate([(1, 2, 4), (2, 4), (5,)]):
        loop.visited(url, *targets)
    sorted_before = loop.frontier.arrange(np.array([4]), np.array([0.1]))
    loop.adopt(5)
    assert loop.frontier.pop(0.0) == 4
    loop.frontier.adopt(sorted_before)
    loop.distilling.adopt(6, loop.urls, loop.frontier)
    assert {loop.frontier.pop(0.0) for _ in range(2)} == {3, 5}
    loop.distilling.close()


def test_a_live_crawl_waits_for_nothing() -> None:
    loop = Loop(replay=False)
    for url, targets in enumerate([(1, 2, 4), (2, 4), (5,)]):
        loop.visited(url, *targets)
        assert not loop.distilling.waited_for(100)
    deadline = time.monotonic() + 60
    while not loop.adopt(3):
        assert time.monotonic() < deadline
    assert loop.frontier.pop(0.0) == 4
    loop.distilling.close()


def test_off_it_keeps_nothing() -> None:
    loop = Loop(replay=True, every=0)
    loop.visited(0, 1, 2)
    assert loop.adopt(1) == []
    assert not loop.distilling.waited_for(1)
    assert not len(loop.distilling._source)
    loop.distilling.close()
