"""Hosts and patterns earn their fetches; what does not is deferred, and never lost."""

from __future__ import annotations

import random
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.crawl import state
from focuscrawl.crawl.traps import FIRST_OF_HOST, FIRST_OF_PATTERN, Quotas
from focuscrawl.report.summary import Summary
from focuscrawl.report.why import Explanation
from focuscrawl.store import CrawlStore
from focuscrawl.strategies import StrategyContext
from focuscrawl.strategies.baselines import BestFirst

from .shelves import Shelf, answer, at, crawled, given_out, open_crawl, run, urls

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


MONTHS = 300


def calendar() -> Shelf:
    """A calendar whose months all come before the articles, found first and scored alike."""
    web = Shelf()
    months = [f"/calendar/?month={i}" for i in range(MONTHS)]
    articles = [f"b/articles/{i}" for i in range(60)]
    web.page("/", "jazz", *months, *map(at, articles))
    for month in months:
        web.page(month, "nothing this month " + month, "/")
    for article in articles:
        web.page(article, "jazz " + article, "/")
    return web


def events(folder: Path, kind: str) -> list[tuple[int, str]]:
    with closing(CrawlStore.open(folder / "crawl.db", read_only=True)) as store:
        rows = store.rows("SELECT seq, detail FROM events WHERE kind = ?", (kind,))
        return [(seq, detail) for seq, detail in rows]


def crawl(folder: Path, web: Shelf, fetches: int = 10_000, **plan: Any) -> list[str]:
    visits = crawled(folder, web, "/", **plan, fetches=fetches).visits
    return urls(visits)


def test_a_calendar_gets_its_first_fetches_and_waits(tmp_path: Path) -> None:
    order = crawl(tmp_path, calendar())
    assert sum("month=" in url for url in order[: FIRST_OF_PATTERN + 61]) == FIRST_OF_PATTERN
    assert len(order) == len(set(order)) == 1 + MONTHS + 60  # nothing is lost
    (seq, detail), *_ = events(tmp_path, "limited")
    assert seq == 1 + FIRST_OF_PATTERN
    assert detail.startswith("a.example/*?month: 30 fetches, 0 relevant pages")
    assert [seq for seq, _ in events(tmp_path, "raised")] == [91, 121, 181, 301]


def test_without_limits_it_comes_first(tmp_path: Path) -> None:
    order = crawl(tmp_path, calendar(), limits=False)
    assert all("month=" in url for url in order[1 : MONTHS + 1])
    assert not events(tmp_path, "limited")


class Diarist(BestFirst):
    """To whom a month is worth a fetch, although it is not on the topic."""

    def page_value(self, url: int, relevance: float) -> float:
        return 1.0 - relevance


def test_a_strategy_may_say_what_earns(tmp_path: Path) -> None:
    opened = open_crawl(tmp_path, calendar(), "/")
    opened.strategy = Diarist(StrategyContext(opened.critic, 0, opened.web))
    order = urls(run(opened))
    opened.close("over")
    assert all("month=" in url for url in order[1 : MONTHS + 1])
    (seq, detail), *_ = events(tmp_path, "limited")
    assert seq == 1 + MONTHS + FIRST_OF_PATTERN
    assert detail.startswith("b.example/articles/*: 30 fetches, 0 relevant pages")


def test_a_web_of_one_pattern_is_crawled_as_without_limits(tmp_path: Path) -> None:
    web = Shelf()
    pages = [f"/p{i}" for i in range(400)]
    rng = random.Random(0)
    for page in ["/", *pages]:
        text = "jazz" if rng.random() < 0.02 else "tax"
        web.page(page, f"{text} {page}", *rng.sample(pages, 8))
    limited = crawl(tmp_path / "limited", web)
    assert limited == crawl(tmp_path / "free", web, limits=False)
    assert events(tmp_path / "limited", "raised")


def test_why_and_summary_tell(tmp_path: Path) -> None:
    crawl(tmp_path, calendar(), 80)
    store = CrawlStore.open(tmp_path / "crawl.db", read_only=True)
    waits = Explanation.of(store, at("/calendar/?month=200")).state
    assert waits.endswith("held back: pattern a.example/*?month: 30 fetches, 0 relevant pages")
    assert "held back" not in Explanation.of(store, at("b/articles/59")).state
    summary = Summary.of(store)
    store.close()
    assert ("limits", "1 pattern limited") in summary.lines()


def versions() -> Shelf:
    """A page of the topic in a hundred versions, and other pages of the topic."""
    rng = random.Random(1)
    page = ["jazz", *(f"word{rng.randrange(3000)}" for _ in range(300))]
    web = Shelf()
    old = [f"/w?version={i}" for i in range(100)]
    new = [f"/new/{i}" for i in range(60)]
    web.page("/", "jazz", *old, *new)
    for i, url in enumerate(old):
        web.page(url, " ".join([*page[:100], f"edit{i}", *page[101:]]))
    for url in new:
        web.page(url, "jazz " + " ".join(f"word{rng.randrange(3000)}" for _ in range(300)))
    return web


def test_near_duplicates_earn_nothing(tmp_path: Path) -> None:
    order = crawl(tmp_path, versions())
    # the first version is new and earns 20 fetches more, the second takes them back
    assert sum("version=" in url for url in order[:91]) == FIRST_OF_PATTERN
    near = events(tmp_path, "near-duplicate")
    assert len(near) == 99
    assert near[0][1].endswith(f"% like {at('/w?version=0')}")
    store = CrawlStore.open(tmp_path / "crawl.db", read_only=True)
    told = Explanation.of(store, at("/w?version=7")).state
    assert told.endswith(f"% like {at('/w?version=0')}")
    assert dict(Summary.of(store).lines())["duplicates"].startswith("0, 99 near-duplicates; ")
    store.close()


def test_unless_they_are_not_looked_for(tmp_path: Path) -> None:
    order = crawl(tmp_path, versions(), near_duplicates=False)
    assert all("version=" in url for url in order[1:101])
    assert not events(tmp_path, "near-duplicate")


@pytest.mark.parametrize(
    ("made", "cuts"),
    [
        (calendar, (1, 20, 12, 4, 70, 20, 60, 1, 1, 400)),
        (versions, (1, 2, 40, 30, 100)),
    ],
)
def test_killed_at_any_fetch_it_goes_on_alike(
    tmp_path: Path, made: Callable[[], Shelf], cuts: tuple[int, ...]
) -> None:
    web = made()
    whole = crawl(tmp_path / "whole", web)
    assert [url for n in cuts for url in crawl(tmp_path / "parts", web, n)] == whole
    for kind in ("limited", "raised", "near-duplicate"):
        assert events(tmp_path / "parts", kind) == events(tmp_path / "whole", kind)


def test_limits_are_raised_until_something_may_come(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz", *(f"/go?n={i}" for i in range(80)))
    for i in range(80):
        web.page(f"/go?n={i}", f"nothing {i}")
    opened = open_crawl(tmp_path, web, "/", per_host=50)
    run(opened, 1)
    under_way = [fetch for _ in range(50) if (fetch := opened.next(0.0)) is not None]
    assert len(under_way) == 50  # all at once: no limit could be reached
    for fetch in under_way:
        answer(opened, fetch)
    assert len(run(opened)) == 30
    opened.close("over")
    # 50 fetches: limits twice as high would leave 10, and a quota opens for 30
    assert [seq for seq, _ in events(tmp_path, "raised")] == [51, 51]


def test_a_host_opens_when_what_it_links_to_is_relevant() -> None:
    quotas = Quotas()
    for i in range(FIRST_OF_HOST):
        turned = list(quotas.count(f"http://hub.example/{i}/x", None, earns=False, repeats=False))
    assert [quota.name for quota in turned] == ["hub.example"]
    barred = quotas.closed_quota("http://hub.example/new")
    assert barred is not None
    assert barred.kind == "host"
    opened = [
        quota.name
        for i in range(5)
        for quota in quotas.count(
            f"http://{i}.example/", "http://hub.example/1/x", earns=True, repeats=False
        )
    ]
    assert opened == ["hub.example", "hub.example/#/*"]
    assert quotas.closed_quota("http://hub.example/new") is None


def test_another_topic_begins_with_new_quotas(tmp_path: Path) -> None:
    opened = open_crawl(tmp_path, calendar(), "/")
    run(opened, 80)
    assert opened.frontier.deferred().size
    waiting = len(opened.frontier)
    for part in opened.parts:
        part.reset()
    assert not opened.frontier.deferred().size
    assert len(opened.frontier) == waiting
    opened.close("over")


def test_deferring_many_is_done_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_MAX_DEFERRED", 10)
    web = Shelf()
    web.page("/", "jazz", *(f"/go?n={i}" for i in range(FIRST_OF_PATTERN + 25)), "/last")
    for i in range(FIRST_OF_PATTERN + 25):
        web.page(f"/go?n={i}", f"nothing {i}")
    web.page("/last", "nothing")
    opened = open_crawl(tmp_path, web, "/")
    run(opened, 1 + FIRST_OF_PATTERN)
    for deferred in (10, 20):
        assert opened.next(0.0) is None
        assert opened.is_waiting
        assert len(opened.frontier.deferred()) == deferred
    fetch = given_out(opened)
    assert fetch.url == at("/last")
    assert not opened.is_waiting
    assert len(opened.frontier) == len(opened.frontier.deferred()) == 25
    opened.close("over")
