"""Crawls whose hosts have a delay, by a clock of their own: who waits for whom."""

from __future__ import annotations

import heapq
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.report.summary import Summary

from .shelves import Shelf, answer, at, open_crawl

if TYPE_CHECKING:
    from focuscrawl.crawl import Crawl, Fetch

ANSWER = 0.1  # seconds until one comes


def run(crawl: Crawl, now: float = 0.0) -> tuple[list[str], float]:
    """Crawl by the clock; return the URLs in the order they were given out, and when it ends."""
    urls: list[str] = []
    under_way: list[tuple[float, int, Fetch]] = []
    while True:
        fetch = crawl.next(now)
        if fetch is not None:
            urls.append(fetch.url)
            heapq.heappush(under_way, (now + ANSWER, len(urls), fetch))
            continue
        ready = crawl.frontier.next_ready()
        if under_way and (ready is None or under_way[0][0] <= ready):
            now, _, fetch = heapq.heappop(under_way)
            answer(crawl, fetch)
        elif ready is None or crawl.stop_reason is not None:
            return urls, now
        else:
            now = max(now, ready)


@pytest.fixture
def web() -> Shelf:
    """A host of jazz whose pages lead to two more each, and a dull one with many links."""
    shelf = Shelf()
    for n in range(40):
        shelf.page(f"jazz/{n}", "jazz", *(f"/{2 * n + k}" for k in (1, 2)))
    shelf.page("dull/", "nothing", *(f"http://dull{n}.example/" for n in range(40)))
    for n in range(40):
        shelf.page(f"dull{n}/", "nothing")
    return shelf


def relevant(urls: list[str]) -> int:
    return sum("//jazz." in url for url in urls)


def test_the_budget_goes_to_the_busy_host_if_there_is_patience(web: Shelf, tmp_path: Path) -> None:
    plan: dict[str, Any] = {"budget": 20, "delay": 1.0}
    hasty = open_crawl(tmp_path / "0", web, "jazz/0", "dull/", patience=0.0, **plan)
    urls, end = run(hasty)
    assert relevant(urls) <= 3
    assert end < 3.0
    assert hasty.priority_fidelity < 0.3
    hasty.close("budget")
    patient = open_crawl(tmp_path / "10", web, "jazz/0", "dull/", patience=10.0, **plan)
    urls, end = run(patient)
    assert relevant(urls) == 19
    assert end == pytest.approx(18.0, abs=1.0)
    assert patient.priority_fidelity == 1.0
    patient.close("budget")


def test_what_better_links_waited_is_in_the_summary(web: Shelf, tmp_path: Path) -> None:
    plan: dict[str, Any] = {"budget": 20, "delay": 1.0, "patience": 0.0}
    crawl = open_crawl(tmp_path / "c", web, "jazz/0", "dull/", **plan)
    run(crawl)
    overtaken = crawl.overtaken
    crawl.close("budget")
    again = open_crawl(tmp_path / "c", web, **plan)
    assert again.overtaken == overtaken > 10
    summary = Summary.of(again.store)
    assert summary.overtaken == {"jazz.example": overtaken}
    assert summary.priority_fidelity == again.priority_fidelity
    assert "otherwise jazz.example was busy" in summary.text()
    again.close("budget")


def test_an_order_that_expects_no_relevance_waits_for_nothing(web: Shelf, tmp_path: Path) -> None:
    plan: dict[str, Any] = {"budget": 20, "delay": 1.0, "strategy": "breadth-first"}
    crawl = open_crawl(tmp_path / "c", web, "jazz/0", "dull/", **plan)
    assert run(crawl)[1] < 3.0
    assert crawl.overtaken == 0
    crawl.close("budget")


def test_a_crawl_without_a_budget_waits_for_nothing(web: Shelf, tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path / "c", web, "jazz/0", "dull/", budget=0, delay=1.0)
    urls, _ = run(crawl)
    assert relevant(urls[:20]) <= 3
    assert len(urls) == 81
    crawl.close("frontier_empty")


def test_links_wait_for_the_start_pages(web: Shelf, tmp_path: Path) -> None:
    seeds = ["dull/", *(f"jazz/{n}" for n in range(10, 15))]
    plan: dict[str, Any] = {"delay": 1.0, "patience": 0.0, "strategy": "breadth-first"}
    crawl = open_crawl(tmp_path / "c", web, *seeds, budget=6, **plan)
    assert set(run(crawl)[0]) == {at(seed) for seed in seeds}
    crawl.close("budget")


@pytest.mark.parametrize("until", [1000.0, math.inf])
def test_links_do_not_wait_for_start_pages_of_a_host_that_is_away(
    web: Shelf, tmp_path: Path, until: float
) -> None:
    crawl = open_crawl(tmp_path / "c", web, "dull/", "jazz/1", budget=6, delay=1.0)
    crawl.frontier.hold(crawl.urls.host_id(1), until)
    urls, end = run(crawl)
    assert relevant(urls) == 0
    assert end < 10.0
    crawl.close("budget")


def test_the_end_of_the_links_is_the_end_of_the_crawl(web: Shelf, tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path / "c", web, "jazz/0", "dull/", budget=1000, delay=1.0)
    urls, _ = run(crawl)
    assert len(urls) == 81
    assert crawl.stop_reason == "frontier_empty"
    crawl.close("frontier_empty")


def test_a_short_patience_is_the_same_for_urls_that_come_last(tmp_path: Path) -> None:
    shelf = Shelf()
    for n in range(60):
        shelf.page(f"jazz/{n}", f"jazz {n}", *(f"/{2 * n + k}" for k in (1, 2)))
    months = [f"/?month={n}" for n in range(40)]
    shelf.page("calendar/", "jazz", *months)
    for n, month in enumerate(months):
        shelf.page(f"calendar{month}", f"month {n}")  # near-duplicates
    plan: dict[str, Any] = {"budget": 60, "delay": 1.0, "patience": 0.5}
    crawl = open_crawl(tmp_path / "c", shelf, "jazz/0", "calendar/", **plan)
    urls, end = run(crawl)
    assert 25 < relevant(urls) < 35
    assert end < 32.0
    crawl.close("budget")
